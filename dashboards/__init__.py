"""The Streamlit dashboard: explore and compare results by release."""

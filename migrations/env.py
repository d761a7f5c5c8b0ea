"""Alembic's entry: runs the migrations on the connection that perfdb.db.migrate hands over."""

from alembic import context

from perfdb.db.session import store_url, writer
from perfdb.db.tables import metadata


def run() -> None:
    """Migrate on the connection given; the alembic command line gives none: the default store."""
    given = context.config.attributes.get("connection")
    if given is not None:
        _on(given)
        return
    with writer(store_url()).begin() as connection:
        _on(connection)


def _on(connection: object) -> None:
    context.configure(
        connection=connection,
        target_metadata=metadata,
        render_as_batch=True,
        compare_type=True,
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()


run()

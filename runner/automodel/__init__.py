"""The process of an AutoModel run: AutoModel's own benchmark recipe, watched. No part of perfdb."""

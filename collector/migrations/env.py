"""Run by Alembic: brings the tables of one connection to a version, within the transaction that it is in."""

from __future__ import annotations

from alembic import context

from collector.database import VERSION_TABLE

context.configure(connection=context.config.attributes["connection"], version_table=VERSION_TABLE)
with context.begin_transaction():
    context.run_migrations()

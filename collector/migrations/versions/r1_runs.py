"""The table of ended runs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None


def upgrade() -> None:
    """Make it."""
    op.create_table(
        "streamgauge_run",
        sa.Column("jid", sa.String(32), primary_key=True),
        sa.Column("run", sa.String(32), primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("type", sa.String(16), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("application", sa.Text, nullable=False),
        sa.Column("attempt", sa.Text, nullable=False),
        sa.Column("start_ms", sa.BigInteger, nullable=False),
        sa.Column("first_start_ms", sa.BigInteger, nullable=False),
        sa.Column("end_ms", sa.BigInteger, nullable=False),
        sa.Column("modified_ms", sa.BigInteger, nullable=False),
        sa.Column("archived_ms", sa.BigInteger, nullable=False),
        sa.Column("restarts", sa.BigInteger, nullable=False),
        sa.Column("tasks", sa.Text, nullable=False),
        sa.Column("format", sa.Integer, nullable=False),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_index("streamgauge_run_run", "streamgauge_run", ["run"])
    op.create_index("streamgauge_run_archived_ms", "streamgauge_run", ["archived_ms"])


def downgrade() -> None:
    """Drop it, with all that it holds."""
    op.drop_table("streamgauge_run")

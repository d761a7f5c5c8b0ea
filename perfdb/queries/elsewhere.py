"""What other pages print of the results in force: only the page that was read last counts."""

from sqlalchemy import Select, and_, select

from perfdb.db.revisions import took_its_place
from perfdb.db.tables import results, sources
from perfdb.record import Origin


def said_elsewhere() -> Select[*tuple[object, ...]]:
    """Earlier revisions, from other files, of published results in force, oldest first.

    `replaced`: whether the next revision took its place, while its own page still prints it.
    """
    earlier, following = results.alias("earlier"), results.alias("following")
    earlier_source, source_now = sources.alias("earlier_source"), sources.alias("source_now")
    return (
        select(
            results.c.id.label("result_id"),
            earlier.c.step_time_s,
            earlier.c.tokens_per_sec_per_gpu,
            earlier.c.model_tflops_per_sec_per_gpu,
            earlier.c.mfu,
            earlier.c.tokens_per_sec,
            earlier.c.raw,
            earlier_source.c.path.label("source"),
            earlier.c.source_line,
            following.c.id.is_not(None).label("replaced"),
        )
        .select_from(results)
        .join(earlier, and_(earlier.c.key == results.c.key, earlier.c.superseded))
        .join(earlier_source, earlier_source.c.id == earlier.c.source_id)
        .join(source_now, source_now.c.id == results.c.source_id)
        .outerjoin(following, took_its_place(following, earlier))
        .where(
            ~results.c.superseded,
            results.c.origin == Origin.PUBLISHED.value,
            earlier_source.c.path != source_now.c.path,
        )
        .order_by(results.c.id, earlier.c.revision)
    )

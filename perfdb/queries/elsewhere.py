"""What other pages print of the results in force: of each result only the page read last holds."""

from sqlalchemy import Select, and_, select

from perfdb.db.revisions import took_its_place
from perfdb.db.tables import results, sources
from perfdb.record import Origin


def said_elsewhere() -> Select[*tuple[object, ...]]:
    """Earlier revisions of published results in force, of other files, oldest first.

    `replaced` says whether the next revision took its place, and its page still says it.
    """
    said, following = results.alias("said"), results.alias("following")
    said_in, now_in = sources.alias("said_in"), sources.alias("now_in")
    return (
        select(
            results.c.id.label("result_id"),
            said.c.step_time_s,
            said.c.tokens_per_sec_per_gpu,
            said.c.model_tflops_per_sec_per_gpu,
            said.c.mfu,
            said.c.tokens_per_sec,
            said.c.raw,
            said_in.c.path.label("source"),
            said.c.source_line,
            following.c.id.is_not(None).label("replaced"),
        )
        .select_from(results)
        .join(said, and_(said.c.key == results.c.key, said.c.superseded))
        .join(said_in, said_in.c.id == said.c.source_id)
        .join(now_in, now_in.c.id == results.c.source_id)
        .outerjoin(following, took_its_place(following, said))
        .where(
            ~results.c.superseded,
            results.c.origin == Origin.PUBLISHED.value,
            said_in.c.path != now_in.c.path,
        )
        .order_by(results.c.id, said.c.revision)
    )

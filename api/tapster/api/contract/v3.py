"""API v3: historical assembly records, read-only (spec/trace §12)."""

from tapster.api.answers import Answer
from tapster.api.ports import Tapster
from tapster.engine.assembly import SourceRegistry
from tapster.engine.trace import (
    NoHistory,
    capabilities,
    detail_answer,
    find_record,
    index_answer,
    needs_history,
    read_v3_path,
    verified_detail,
)


async def answer_v3(tapster: Tapster, method: str, path: str) -> Answer:
    """Answer a request by its method and its raw path below ``/v3``.

    Raises:
        RequestError: 400, 404 or 405 with the contract's code.
    """
    request = read_v3_path(method, path)
    storage = await tapster.traces.storage()
    if request.session_id is None:
        return Answer(
            capabilities(
                storage,
                source_protocol=SourceRegistry.version,
                has_composer=True,
                can_project=True,
                keeps_requests=True,
            )
        )
    sources = await tapster.traces.sources(request.session_id)
    if request.record_id is None:
        return Answer(index_answer(request.session_id, sources, storage))
    record = find_record(request.session_id, request.record_id, sources)
    if record is not None:
        looked = await tapster.traces.history(record) if needs_history(record) else NoHistory()
        record = verified_detail(record, looked)
    return Answer(detail_answer(record))

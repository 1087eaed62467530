"""Doors in the shape of model providers, without any I/O: bodies in, leaves out; events in, events out.

A door (services, api) works with five things and knows no provider's details:

``kinds.KINDS``: kinds of providers by name (``openai``, ``anthropic``). A ``ProviderKind`` has

* ``prefix``: the path of its door (``/openai/v1``, ``/anthropic``);
* ``find(method, path, *, upgrade=False) -> Operation``: what a path below the prefix means; raises
  ``NotCoveredError`` (``status``, ``code``, ``message``) by name for realtime, audio, images, files, batches and a
  websocket upgrade (426), and for anything unknown;
* ``error(code, message, *, status=None) -> ProviderError`` (``status``, ``body``): a refusal of ours in the
  provider's shape; its ``code`` is ``sluice_`` and the code. ``fault(error: ServiceError)`` does the same for ours;
* ``headers``: allow lists (``HeaderRules``): ``request(headers)``, ``answer(headers)``, ``query(pairs)``,
  ``credential(key) -> (name, value)``, ``keys(headers) -> list`` of all credentials that a caller sent;
* ``models(body, allowed, aliases) -> bytes``: a list of models with what the provider record allows.

``Operation``: ``name`` (``chat.completions``, ``responses.create``, ``messages.count_tokens`` …), ``path`` (what to
call at the provider, behind the base URL), ``ids`` (ids in the path, by name: ``response``, ``conversation``,
``item``), ``family`` (None: no texts, such as a DELETE), ``answers`` (whether its answers hold texts).

``ApiFamily``: one per API, one module of ``families`` and one table each:

* ``request(operation, body: bytes) -> GatewayRequest``; raises the errors of ``strictjson`` and ``content``;
* ``answer(operation, body: bytes, documents=()) -> GatewayAnswer``;
* ``stream(operation, open_channel, documents=()) -> EventStream``. ``documents`` are
  ``offsets.document_maps(sent.documents, came.documents, resolve)`` of the request as it was sent and as it came:
  citations of places in a document move to the caller's text.

``GatewayRequest`` (immutable): ``facts`` (``ConversationFacts``: model, stream, conversation, previous response,
session values, text of the first user message, tools by who runs them), ``items`` (context items for middlewares and
pipelines), ``changed(items)`` (with what they made of them), ``leaves()`` (every text with path and ``LeafRole``),
``numbers(roles)`` (which items hold leaves of some roles, so that ``system`` and ``tools`` can take another scope),
``unscanned`` (counts for ``X-Sluice-Unscanned``), ``signed`` (``SignedBlock``: ``digest``, ``kind``, ``path``,
``raw``), ``with_signed({digest: raw})``, ``with_model(name)``, ``with_note(text)``, ``without_tools(numbers)``,
``replaced({path: value})``, ``to_bytes()``. Bytes that no change touches are those that came.

``GatewayAnswer`` (immutable): the same ``items``, ``changed``, ``leaves()``, ``signed`` and ``to_bytes``, and
``rewritten(open_channel) -> GatewayAnswer``, which changes every text by channels exactly as a stream does: offsets
of citations move with the text, ``logprobs`` go where text changed (``notes``). ``usage``, ``ids`` (of the answer and
its conversation), ``tool_calls`` (``ToolCall``: name, arguments, runner).

``EventStream``: ``feed(chunk: bytes) -> bytes`` and ``end(*, died: bool) -> bytes`` (what is still open, and the
family's own ending if the stream died). After each of them ``take_signed()`` returns the blocks to seal before the
bytes go out. ``usage``, ``ids``, ``notes``, ``ended`` tell what was seen.

``OpenChannel = Callable[[TextChannel], ChannelText | None]``: asked once for each channel (a text, the arguments of a
tool call, a refusal, a summary, per choice); None: the channel passes as it is. A ``ChannelText`` has
``feed(text) -> Sequence[TextPiece]`` and ``finish()``; a ``TextPiece(source, text)`` says what became of which part,
so that offsets stay right. In arguments a channel sees decoded strings, one ``ChannelText`` per string; escapes are
ours. ``restoring.HandleRestoration(resolve, …)`` is the ``OpenChannel`` that puts originals in place of handles
(longest open handle held back, ``positions: safe``); redaction or moderation of answers is another one.
"""

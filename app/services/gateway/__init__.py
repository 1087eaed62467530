"""Doors in the shape of model providers: whose conversation it is, what it may restore, and what must not leave.

The run of one request takes these steps, in this order:

1. ``scopes.GatewayScopes.find(caller, hints, rules) -> ConversationScope``: which conversation this is. ``caller`` has
   ``end_user`` (``core.access.Caller``: the subject of a token, or the user whom a key with the role delegate names).
   ``ScopeHints``: the header ``X-Sluice-Scope`` (``named``), the ids of a conversation and of a previous response
   (``ids``; also those in a path), the session values of the body in the order of the family's table, the text of the
   first user message. ``ScopeRules`` are what the policy says. Raises NotFoundError for an unknown or another caller's
   scope, conversation or response. The answer's ``X-Sluice-Scope`` is ``ConversationScope.name``; if ``provider`` is
   set, no other provider may get the request.
2. ``request_vaults.RequestVaults.open(caller, scope, texts, secrets) -> RequestVault``: the vault as this one request
   sees it. ``texts`` reads all texts of the request as they came, in the order of the body. It takes the place of
   ``VaultService`` in ``OutcomeRecorder`` (``commit``, ``read``, ``known``), so pipelines run over it unchanged with
   the argument ``scope`` set to ``scope.name``, or to ``scope.stable`` for the items of ``system`` and ``tools``; these
   come first, then ``share_opening`` lets the messages use their handles. In a derived scope it keeps and reads only
   handles whose originals stand in this request (or in the ones before it that the id of the conversation binds);
   other text in the shape of a handle is a literal.
3. ``signed.SignedBlocks.fetch(vault, digests) -> dict[str, bytes]`` for ``GatewayRequest.with_signed``; raises
   ``SignedBlockGoneError`` if one of ``digests`` is unknown in this scope: the turn is refused.
4. ``egress.checked(vault, body, texts) -> EgressResult``: call it on the bytes that would leave; ``texts`` reads the
   paths of all texts that may change (``GatewayRequest.leaves()`` without signed and machine-only ones; of JSON inside
   of a string: the path of the string). ``EgressResult.replaced`` maps paths to new texts (for
   ``GatewayRequest.replaced``), ``counts`` counts them by label for the record. Raises ``EgressRefusedError`` if a live
   original stands elsewhere.
5. ``RequestVault.count_changed(before, after)``: how many texts an earlier turn sent in another form
   (``prefix_changed`` of the record).
6. ``RequestVault.resolve(handle) -> Original | None``: for ``HandleRestoration`` in answers and streams: synchronous,
   from memory. None without the role restorer, for what the policy withholds, and for whatever the request may not see.
7. ``SignedBlocks.keep(vault, {digest: raw}, ttl_s)`` before the bytes of an answer with signed blocks go out.
8. ``GatewayScopes.bind(caller, scope, provider, ids, vault.handles, ttl_s)`` before an answer's ids go out (response,
   conversation), and ``unbind(caller, ids)`` after a DELETE.

Where the request goes: ``providers.ProviderService.of_tenant(tenant)`` are the tenant's ``ProviderEndpoint``s in order;
``core.gateway.providers.choose_provider([endpoint.entry, …], kind, model)`` chooses one by the model's name (or
``provider_named``, if a rule of the policy leads elsewhere) and says the model's name there;
``core.gateway.credentials.credential_for(entry, caller_key, chosen_by_model=…)`` says whose key goes along; and
``async with ProviderService.client.send(endpoint, ProviderRequest(method, path, headers, query, body), credential) as
answer`` sends it: ``answer.status``, ``headers``, ``chunks()`` as they come, or ``whole()``.

``assembly`` makes one ``opened_scopes.OpenedScopes`` (with ``VaultService.opener``) for all of them, and lets it
``hear`` every change: it is the only place that keeps originals in memory. ``seen_texts.SeenTexts``, for the doors that
check texts only (``guardrails``), keeps redacted forms and hears the same changes.
"""

# ruff: noqa: E501 - a pattern is read as a whole
"""Patterns of attacks on the prompt, the data or the tools, in requests and in documents."""

from typing import Final

from app.engines.injection.wording import (
    DELIMITER_FORGERY,
    ENCODED_INSTRUCTIONS,
    EXFILTRATION,
    MACHINE,
    PRIVATE,
    RESHAPE,
    SECRET_PROMPT,
    SHOW,
    SYSTEM_PROMPT_LEAK,
    TOOL_HIJACK,
    InjectionRule,
)

_LEAK = (
    InjectionRule(
        SYSTEM_PROMPT_LEAK,
        0.8,
        rf"\b{SHOW}\b(?:\W{{1,3}}(?:me|us|back|out|the|your|my|this|full|entire|exact|complete|whole|all|of|"
        rf"verbatim|a|copy|contents?|text|to|in|word|for)){{0,8}}\W{{1,3}}(?:your|these|the|its|all)\W{{1,3}}(?:own\W{{1,3}})?"
        rf"(?:\w+\W{{1,3}})?{SECRET_PROMPT}",
    ),
    InjectionRule(
        SYSTEM_PROMPT_LEAK,
        0.75,
        rf"\b(?:what|which)(?:'s| is| are| were| was)? (?:your|the) (?:exact |full |own )?{SECRET_PROMPT}"
        r"|what (?:instructions?|rules|prompt|directives) (?:were|have|did|are) you (?:been )?(?:given|get|told|following|receive)",
    ),
    InjectionRule(
        SYSTEM_PROMPT_LEAK,
        0.85,
        rf"\b{SHOW}\b[^.\n]{{0,40}}\b(?:everything|all (?:the )?(?:text|words|lines|content)|the (?:text|words|lines|content)|"
        r"what(?:'s| is| was)?(?: written)?) (?:that (?:is|was|came) |written |that appears? |which (?:is|was) )?"
        r"(?:above|before this|preceding|at the (?:beginning|start|top))",
    ),
    InjectionRule(
        SYSTEM_PROMPT_LEAK,
        0.7,
        rf"\b{SHOW}\b (?:me |us )?(?:all )?(?:of )?your (?:\w+ )?(?:prompts?|prompt texts?|instructions?|initial prompt)\b",
    ),
    InjectionRule(
        SYSTEM_PROMPT_LEAK,
        0.7,
        r"\b(?:zeig\w*|nenn\w*|gib|wiederhol\w*|schreib\w*|verrat\w*)\b[^.\n]{0,50}\b(?:(?:dein|ihr|deinen|deine|ihre|alle)\w* )"
        r"(?:\w+ )?(?:prompt\w*|anweisung\w*|instruktion\w*|system\w*)"
        r"|\b(?:muestra|revela|imprime|repite|montre|révèle|affiche|mostra|rivela|exiba|revele)\w*\b[^.\n]{0,50}"
        r"(?:prompt|instrucciones|instructions|istruzioni|instruções)",
    ),
)

_RESHAPED = (
    # The prompt is asked for as a form: a table, a song, a file.
    InjectionRule(
        SYSTEM_PROMPT_LEAK,
        0.75,
        rf"\b{RESHAPE}\b[^.\n]{{0,80}}\b(?:your|its|the (?:model|assistant|bot|operator|developer)'?s?) (?:own |very |exact |full )?"
        rf"(?:{SECRET_PROMPT}|(?:system|hidden|secret|initial|first|starting|developer|operator'?s?) (?:texts?|rules|lines?|notes?|message)|preamble)\b",
        alone=True,
    ),
    InjectionRule(
        SYSTEM_PROMPT_LEAK,
        0.7,
        rf"\b(?:{RESHAPE}|{SHOW})\b[^.\n]{{0,60}}\b(?:texts?|words?|lines?|sentences?|paragraphs?|everything|all|whatever|conversation)\b[^.\n]{{0,40}}"
        r"\b(?:above|before|preced(?:es|ing|ed)|prior to|ahead of) (?:this (?:line|message|sentence|one|prompt)|my (?:first |own )?(?:message|question|prompt|turn)|mine\b|I (?:came|wrote|began|started))",
        alone=True,
    ),
    InjectionRule(
        SYSTEM_PROMPT_LEAK,
        0.55,
        rf"\b{RESHAPE}\b[^.\n]{{0,60}}\byour (?:own )?(?:prompt|instructions?|rules|guidelines|configuration|first message|directives)\b",
    ),
)

_DELIMITER = (
    InjectionRule(
        DELIMITER_FORGERY,
        0.85,
        r"<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id|end_header_id|begin_of_text|"
        r"end_of_turn|start|end|message|channel)\|>|\[/?INST\]|<</?SYS>>|<start_of_turn>|<end_of_turn>",
        documents=True,
        alone=True,
    ),
    InjectionRule(
        DELIMITER_FORGERY,
        0.7,
        r"(?m)^[\s#*>\-=\[(<{]*(?:system|assistant|developer|sistema|système)(?: (?:message|prompt|override|note|update|instruction))?"
        r"[\s\])>}*]*:[ \t*]*(?:you\b|ignore|the user|please|new|forget|from now|disregard|override|do not|all\b|i (?:will|am|have))",
        True,
    ),
    InjectionRule(
        DELIMITER_FORGERY,
        0.7,
        r"</?(?:system|system[_-]?(?:prompt|message|instructions?)|instructions?|assistant|developer|user[_-]?(?:input|query)|"
        r"untrusted|tool_result|function_results?|context|documents?)>[\s\S]{0,40}?(?:<(?:system|instructions?|assistant)|"
        r"ignore|you (?:must|are|will|should)|new|now)",
        True,
    ),
    InjectionRule(
        DELIMITER_FORGERY,
        0.75,
        r"(?:[-=#*_~]{3,}|\[|<)\s*(?:end|start|begin(?:ning)?)(?: of)?(?: the)? (?:\w+ )?(?:system|user|prompt|document|context|"
        r"conversation|instructions?|untrusted|data|input|tool)[^\n]{0,30}(?:[-=#*_~]{3,}|\]|>)"
        r"[\s\S]{0,60}(?:ignore|you (?:must|are|will|should)|new (?:task|instructions?)|now|system|instead|print|write|say)",
        True,
    ),
)

_EXFILTRATION = (
    InjectionRule(
        EXFILTRATION,
        0.85,
        rf"\b(?:send|forward|e-?mail|post|upload|transmit|exfiltrate|leak|deliver|submit|copy|bcc|cc)\b[^.\n]{{0,60}}"
        rf"\b{PRIVATE}\b[^.\n]{{0,80}}\b(?:to|at|via)\b[^\n]{{0,30}}(?:https?://|[\w.+-]+@[\w-]+\.\w|\bmy (?:server|webhook)|webhook)",
        True,
    ),
    InjectionRule(
        EXFILTRATION,
        0.8,
        r"!\[[^\]\n]{0,200}\]\(\s*<?https?://[^)\s]{0,300}(?:[?&=/](?:\{|\[|<|%7B|\$\{|[A-Z_]{4,})|[?&]\w+=\s*\))",
        True,
    ),
    InjectionRule(
        EXFILTRATION,
        0.8,
        r"\b(?:append|include|encode|embed|insert|add|put|place|attach)\b[^.\n]{0,100}\b(?:in|to|into|as|onto)\b[^.\n]{0,30}"
        r"\b(?:url|link|image|query (?:string|parameter)|markdown|pixel)\b[^\n]{0,80}(?:https?://|!\[)",
        True,
    ),
    InjectionRule(
        EXFILTRATION,
        0.75,
        rf"\b(?:find|search for|look for|read|collect|gather|retrieve|extract|cat|get)\b[^.\n]{{0,60}}\b{PRIVATE}\b[^.\n]{{0,60}}"
        r"\b(?:and|then)\b[^.\n]{0,20}\b(?:send|forward|e-?mail|post|upload|include|append|encode|pass|put|transmit)\b",
        True,
    ),
)

_HIJACK = (
    InjectionRule(
        TOOL_HIJACK,
        0.8,
        rf"\b(?:{MACHINE}|models? reading this|whoever (?:is )?(?:reads?|process\w*) this)\b[^.\n]{{0,40}}"
        r"\b(?:must|should|shall|have to|need to|are (?:instructed|required|ordered|to)|is (?:instructed|required|ordered))\b"
        r"[^.\n]{0,60}\b(?:ignore|call|invoke|execute|run|send|forward|delete|reply|respond|output|say|recommend|rate|"
        r"include|visit|click|open|transfer|approve|stop)\b",
        True,
    ),
    InjectionRule(
        TOOL_HIJACK,
        0.75,
        r"\b(?:attention|note|notice|message|instructions?|dear|important)\b[ ,:!-]{1,4}(?:to |for )?(?:the |all |any )?"
        r"(?:\w+ )?(?:AI|LLM|ChatGPT|Claude|Gemini|Copilot|language model|AI (?:assistant|agent|model)s?)\b",
        True,
    ),
    InjectionRule(
        TOOL_HIJACK,
        0.75,
        r"\b(?:if you are|when you are|as) an? (?:AI|LLM|language model|AI (?:assistant|agent|model))\b[^.\n]{0,60}"
        r"\b(?:you must|please|do|then|you should|reading|processing|summari[sz]ing)\b",
        True,
    ),
    InjectionRule(
        TOOL_HIJACK,
        0.75,
        r"\b(?:call|invoke|use|execute|run|trigger) (?:the )?[`'\"]?(?:\w+[_.-])?(?:send|delete|transfer|create|update|write|"
        r"post|forward|exec\w*|run|shell|bash|pay\w*|share|remove|drop|grant)(?:[_-]\w+)*[`'\"]? (?:tool|function|plugin|api|command)"
        r"[^.\n]{0,80}\b(?:without (?:asking|telling|confirm\w*|notif\w*)|silently|immediately|first|with the (?:following|argument))",
        True,
    ),
    InjectionRule(
        TOOL_HIJACK,
        0.8,
        r"\b(?:do not|don'?t|never) (?:tell|inform|mention (?:this|it|anything)?\s*to|notify|alert|reveal this to|ask) the user\b"
        r"|\bwithout (?:telling|informing|notifying|alerting|asking) the user\b",
        True,
    ),
)

_ENCODED = (
    InjectionRule(
        ENCODED_INSTRUCTIONS,
        0.7,
        r"\b(?:decode|decrypt|decipher|deobfuscate|translate|convert|read)\b[^.\n]{0,60}\b(?:base ?64|hex(?:adecimal)?|rot-?13|"
        r"caesar|morse|binary|cipher|ascii|unicode|reversed?|backwards?|leet)\b[^\n]{0,80}\b(?:and|then)\b[^\n]{0,30}"
        r"\b(?:follow|execute|obey|run|comply|perform|carry out|do (?:what|as|exactly)|act on|answer|respond)",
        documents=True,
        alone=True,
    ),
)

TAKEOVERS: Final = (*_LEAK, *_RESHAPED, *_DELIMITER, *_EXFILTRATION, *_HIJACK, *_ENCODED)

# ruff: noqa: E501, S105 - a pattern is read as a whole, and none is a password
"""What injections say, as patterns in the order of their kinds; RE2 syntax, written by us.

``score`` says how much a match alone speaks for an attack. ``documents`` marks rules that hold for texts of tools and
files too: what no honest document says to a reader that happens to be a model.
"""

from dataclasses import dataclass
from typing import Final

OVERRIDE: Final = "override"
ROLE_PLAY: Final = "role_play"
SYSTEM_PROMPT_LEAK: Final = "system_prompt_leak"
DELIMITER_FORGERY: Final = "delimiter_forgery"
EXFILTRATION: Final = "exfiltration"
TOOL_HIJACK: Final = "tool_hijack"
REFUSAL_SUPPRESSION: Final = "refusal_suppression"
ENCODED_INSTRUCTIONS: Final = "encoded_instructions"
HIDDEN_TEXT: Final = "hidden_text"
CLASSIFIER: Final = "classifier"

KINDS: Final = (
    *(OVERRIDE, ROLE_PLAY, SYSTEM_PROMPT_LEAK, DELIMITER_FORGERY, EXFILTRATION),
    *(TOOL_HIJACK, REFUSAL_SUPPRESSION, ENCODED_INSTRUCTIONS, HIDDEN_TEXT, CLASSIFIER),
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One pattern and what a match means."""

    kind: str
    score: float
    pattern: str
    documents: bool = False


_DROP = (
    r"(?:ignor(?:e|es|ing)|disregard(?:ing)?|forget(?:ting)?|neglect|overlook|overrid(?:e|ing)|overrule|bypass(?:ing)?|"
    r"discard|drop|dismiss|abandon|erase|void|set aside|throw (?:out|away)|leave (?:behind|aside)|"
    r"pay no (?:attention|heed) to|(?:do not|don'?t|stop|quit|cease|no longer) (?:follow(?:ing)?|obey(?:ing)?|"
    r"listen(?:ing)? to|adher(?:e|ing) to|comply(?:ing)? with|rely(?:ing)? on)|free from|deviate from|"
    r"(?:take|put) (?:no|zero) (?:notice|weight) (?:of|on))"
)
_WHICH = (
    r"(?:(?:all|any|every|each|everything|anything|of|the|your|my|our|its|these|those|this|that|and|or|in|"
    r"such|what(?:ever)?|both|entire|whole)\W{1,3}){0,6}"
)
_EARLIER = (
    r"(?:previous(?:ly)?|prior|preceding|above|earlier|former|foregoing|initial|original|existing|current|old|"
    r"other|system|developer|safety|given|aforementioned|past|built[- ]in|internal|hidden|default|programmed|"
    r"content|ethical|usage|openai|anthropic|model'?s?|company)"
)
_ORDERS = (
    r"(?:instructions?|directions?|directives?|commands?|orders?|prompts?|rules?|guidelines?|polic(?:y|ies)|"
    r"constraints?|restrictions?|programming|guardrails?|safeguards?|assignments?|constitution|"
    r"system message|role definition|limitations?|safety (?:training|measures|filters?))"
)
_MODEL = (
    r"(?:AI|A\.I\.|LLM|GPT(?:-?\d\w*)?|ChatGPT|Claude|Gemini|Copilot|Llama|Grok|Siri|assistant|chat ?bot|bot|"
    r"language model|agent|model)"
)
_SECRET_PROMPT = (
    r"(?:system|hidden|initial|original|internal|secret|developer|base|pre|starting|underlying|full|entire|"
    r"complete|confidential|meta)[- ]?(?:system[- ])?(?:prompts?|instructions?|messages?|directives?|"
    r"configuration|guidelines?|preamble|context)"
)
_SHOW = (
    r"(?:reveal|show|print|repeat|output|display|tell|give|write|recite|disclose|dump|leak|share|expose|echo|"
    r"summari[sz]e|paraphrase|translate|encode|paste|return|copy|quote|spell out|list|describe|send|provide)"
)
_PRIVATE = (
    r"(?:passwords?|credentials?|api[ _-]?keys?|secrets?|access tokens?|tokens?|private keys?|session cookies?|"
    r"env(?:ironment)? variables?|\.env|ssh keys?|id_rsa|credit card|account numbers?|chat history|"
    r"conversation(?: history)?|inbox|contacts?|personal (?:data|information)|user(?:'s)? data)"
)

_OVERRIDE = (
    Rule(
        OVERRIDE,
        0.9,
        rf"\b{_DROP}\W{{1,3}}{_WHICH}{_EARLIER}\W{{1,3}}(?:\w+\W{{1,3}}){{0,2}}{_ORDERS}\b",
        True,
    ),
    Rule(
        OVERRIDE,
        0.8,
        rf"\b{_DROP}\W{{1,3}}(?:all|any|every|your|the|these|those|my|of|\W)+{_ORDERS}\b"
        r"(?:\W{1,3}(?:\w+\W{1,3}){0,3}(?:above|before|given|so far|previously|you (?:were|have been|got|received)))?",
    ),
    Rule(
        OVERRIDE,
        0.85,
        rf"\b{_ORDERS}\W{{1,3}}(?:\w+\W{{1,3}}){{0,3}}(?:above|before|earlier|so far|previously)\b.{{0,60}}"
        r"\b(?:(?:no longer|do not|don'?t) apply|(?:is|are) (?:void|cancel+ed|revoked|obsolete|null|superseded|"
        r"overridden|suspended|lifted))",
        True,
    ),
    Rule(
        OVERRIDE,
        0.75,
        r"\b(?:forget|ignore|disregard|erase)\W{1,3}(?:about )?(?:everything|anything|all|whatever|what)\b"
        r"(?:\W{1,3}(?:that|which|of|this|the|is|was|were|has|have|been|it|you|i|we|they|"
        r"your|my|documents?|texts?|context|above|before|prior|previous(?:ly)?|earlier|said|told|know|learned|discussed|"
        r"provided|wrote|written|stuff|information|so far|here|until now)){1,8}",
    ),
    Rule(
        OVERRIDE,
        0.55,
        r"\b(?:forget|ignore) (?:everything|all)(?: of (?:it|that|this))?\s*(?:[.,;:!\n]|and\b|$)",
    ),
    Rule(
        OVERRIDE,
        0.7,
        r"\b(?:new|updated|revised|real|actual|additional|important|urgent|final|secret|special|true|"
        r"priority|emergency) (?:system )?(?:instructions?|directives?|task|orders|rules|system prompt)"
        r"(?: from (?:the )?(?:developers?|admin\w*|system|user))?\s*[:=]",
        True,
    ),
    Rule(
        OVERRIDE,
        0.7,
        r"\byour (?:new|real|actual|true|only|sole) (?:task|job|goal|objective|mission|purpose|instructions?|role) "
        r"(?:is|are|will be|from now)\b",
        True,
    ),
    Rule(
        OVERRIDE,
        0.6,
        r"\b(?:from (?:now on|this (?:point|moment)(?: on(?:wards?)?)?)|starting now|henceforth|for the rest of (?:this|our) "
        r"(?:chat|conversation|session)),?\s+(?:you (?:will|shall|must|are|have to|can|should)|your|act|behave|respond|answer|speak)\b",
    ),
    Rule(
        OVERRIDE,
        0.7,
        r"\b(?:stop|halt|wait|cancel)\b[!.,:; ]{1,4}(?:(?:the|that|this|your|previous|current) ){0,3}(?:task|process|"
        r"instructions?|ignore|forget|new task|instead)",
    ),
    Rule(
        OVERRIDE,
        0.75,
        r"\b(?:instead of (?:the|your|what|following|answering|doing|summari[sz]ing|translating|completing)[^.\n]{0,80}"
        r"|rather than (?:follow|answer|summari[sz]|translat|complet)\w*[^.\n]{0,80}|before you (?:answer|continue|do anything)[^.\n]{0,40})"
        r"(?:say|print|output|write|reply|respond|tell|send|call|run|execute|delete|forward) ",
    ),
    Rule(
        OVERRIDE,
        0.8,
        r"\b(?:enter|enable|activate|switch (?:in)?to|turn on|engage|unlock|boot into|start) (?:the )?"
        r"(?:developer|debug|god|admin\w*|root|sudo|maintenance|unrestricted|jailbreak|unfiltered|DAN|test|diagnostic|"
        r"override|evil|opposite|free)[- ]mode\b",
    ),
    Rule(
        OVERRIDE,
        0.85,
        r"\b(?:developer|debug|god|admin|root|sudo|unrestricted|jailbreak|unfiltered|DAN|opposite)[- ]mode "
        r"(?:is )?(?:now )?(?:enabled|activated|active|engaged|unlocked|on\b)",
    ),
)

_OTHER_LANGUAGES = (
    Rule(
        OVERRIDE,
        0.85,
        r"\b(?:ignorier\w*|vergiss|vergesse\w*|missachte\w*|verwirf|verwerfe\w*|überspring\w*|lösche?|streiche?)\b"
        r"(?:\W{1,3}\w+){0,4}?\W{1,3}(?:anweisung\w*|instruktion\w*|befehle?\w*|vorgaben?|regeln?|aufträge?\w*|aufgaben?|"
        r"anordnung\w*|richtlinien?|prompts?|informationen|eingaben?|ausführungen)",
        True,
    ),
    Rule(
        OVERRIDE,
        0.7,
        r"\b(?:vergiss|vergessen sie|ignoriere?n?(?: sie)?) (?:alles|das (?:alles|vorherige)|alle (?:vor|bis)\w*)",
    ),
    Rule(
        OVERRIDE,
        0.7,
        r"\b(?:anweisung\w*|instruktion\w*|ausführungen|aufträge|befehle)\b(?:\W{1,3}\w+){0,3}?\W{1,3}"
        r"(?:ignorier\w*|vergessen|missachten)",
    ),
    Rule(
        OVERRIDE,
        0.85,
        r"\b(?:ignore[zr]?|oublie[zr]?|néglige[zr]?|fais abstraction|faites abstraction|ne (?:suis|suivez) (?:pas|plus))\b"
        r"(?:\W{1,3}\w+){0,4}?\W{1,3}(?:instructions?|consignes?|directives?|règles?|ordres?|commandes?)",
        True,
    ),
    Rule(
        OVERRIDE,
        0.85,
        r"\b(?:ignora(?:r|d|te)?|olvid(?:a|e|ar|en)|descarta|omite|esquece?[rm]?|ignore[m]?|desconsider[ae]|"
        r"dimentica(?:re|te)?|trascura|scorda)\b(?:\W{1,3}\w+){0,4}?\W{1,3}(?:instrucciones|instruções|istruzioni|"
        r"órdenes|ordens|ordini|reglas|regras|regole|indicaciones|directrices|diretrizes|direttive|comandi|comandos)",
        True,
    ),
    Rule(
        OVERRIDE,
        0.85,
        r"\b(?:negeer|vergeet|zignoruj|zapomnij|ignorera|glöm|ignorer|glem|zaboravi|ignoriraj|unohda|yoksay|unut)\b"
        r"(?:\W{1,3}\w+){0,4}?\W{1,3}(?:instructies|opdrachten|regels|instrukcj\w*|polece\w*|instruktion\w*|instrukcij\w*|"
        r"instruksjon\w*|ohjee\w*|talimat\w*)",
        True,
    ),
    Rule(
        OVERRIDE,
        0.85,
        r"(?:игнорируй|забудь|отмени|не следуй)\w*(?:\W{1,3}\w+){0,4}?\W{1,3}(?:инструкци|указани|правил|команд|приказ)\w*",
        True,
    ),
    Rule(
        OVERRIDE,
        0.85,
        r"(?:忽略|无视|忘记|忘掉|不要遵守|無視)[^。.\n]{0,16}(?:指令|指示|规则|規則|提示|说明|命令)"
        r"|(?:指示|命令|プロンプト|ルール)[^。\n]{0,12}(?:無視|忘れ)|(?:지시|명령|규칙)[^.\n]{0,12}(?:무시|잊)"
        r"|(?:تجاهل|انس)[^.\n]{0,24}(?:التعليمات|الأوامر)|(?:पिछले|सभी)[^।\n]{0,24}निर्देश[^।\n]{0,16}(?:अनदेखा|भूल)",
        True,
    ),
)

_ROLE_PLAY = (
    Rule(
        ROLE_PLAY,
        0.85,
        r"\b(?:do anything now|stands? for [\"'“]?do anything|jailbroken|jail[- ]?break(?:ing)? (?:mode|prompt)|"
        r"no longer bound by|broken? free (?:of|from) the (?:typical )?(?:confines|constraints)|"
        r"without (?:any |its |your )?(?:ethical|moral) (?:guidelines|constraints|restrictions|limits|filters?))",
    ),
    Rule(
        ROLE_PLAY,
        0.7,
        r"\b(?:you are|you'?re|act as|pretend (?:to be|you are|that you are)|roleplay as|imagine you are|simulate|become|"
        r"play the role of)\b[^.\n]{0,80}\b(?:unrestricted|unfiltered|uncensored|amoral|evil|jailbroken|unethical|"
        r"without (?:any )?(?:restrictions|limits|limitations|rules|filters?|censorship|morals|ethics)|"
        r"no (?:rules|restrictions|limits|limitations|filters?|ethics|morals|guidelines))",
    ),
    Rule(
        ROLE_PLAY,
        0.5,
        rf"\byou are (?:now |no longer |not )(?:(?:an?|the|just|only|called|named|my) ){{0,2}}(?:\w+ ){{0,3}}{_MODEL}\b",
    ),
    Rule(
        ROLE_PLAY,
        0.45,
        r"\b(?:you are now|you will now (?:be|act)|i want you to (?:act|pretend|behave|roleplay)|"
        r"(?:ich möchte,? dass (?:du|sie) als)|ab jetzt bist du|jetzt bist du|du bist (?:nun|jetzt))\b",
    ),
    Rule(
        ROLE_PLAY,
        0.75,
        rf"\b(?:two|both|2) (?:responses?|answers?|ways|replies|outputs)\b[^\n]{{0,200}}\b{_MODEL}\b[^\n]{{0,200}}"
        r"\b(?:DAN|jailbreak|unfiltered|unrestricted|evil|developer mode)",
    ),
    Rule(
        ROLE_PLAY,
        0.6,
        r"\b(?:stay|remain|never break|don'?t break|always (?:stay|be|remain)) (?:in )?character\b",
    ),
)

_REFUSAL = (
    Rule(
        REFUSAL_SUPPRESSION,
        0.65,
        r"\b(?:never|do not|don'?t|cannot|must not|not allowed to|under no circumstances) (?:ever )?(?:refuse|reject|decline|"
        r"apologi[sz]e|warn|lecture|moralize|add (?:any )?(?:warnings?|disclaimers?)|say (?:that )?(?:you )?can'?t|"
        r"mention (?:that )?(?:you|this|these|any|the (?:policy|policies|instructions?)))",
    ),
    Rule(
        REFUSAL_SUPPRESSION,
        0.7,
        rf"\b(?:as an {_MODEL} (?:language )?model|i can'?t (?:do|assist|help)|i'?m sorry,? (?:but )?)[^.\n]{{0,60}}"
        r"(?:is (?:forbidden|not allowed|banned|prohibited)|never (?:say|use|write))",
    ),
    Rule(
        REFUSAL_SUPPRESSION,
        0.75,
        r"\b(?:no|without|ignor\w+|disabl\w+|remov\w+|turn off|bypass\w*|circumvent\w*|evad\w+) (?:any |all |your |the |of |its )*"
        r"(?:ethic\w*|moral\w*|legal|safety|content|openai'?s?|censorship) (?:and \w+ )?(?:filters?|polic(?:y|ies)|"
        r"guidelines?|restrictions?|constraints?|considerations?|concerns?|protocols?|boundaries)",
    ),
)

_LEAK = (
    Rule(
        SYSTEM_PROMPT_LEAK,
        0.8,
        rf"\b{_SHOW}\b(?:\W{{1,3}}(?:me|us|back|out|the|your|my|this|full|entire|exact|complete|whole|all|of|"
        rf"verbatim|a|copy|contents?|text|to|in|word|for)){{0,8}}\W{{1,3}}(?:your|these|the|its|all)\W{{1,3}}(?:own\W{{1,3}})?"
        rf"(?:\w+\W{{1,3}})?{_SECRET_PROMPT}",
    ),
    Rule(
        SYSTEM_PROMPT_LEAK,
        0.75,
        rf"\b(?:what|which)(?:'s| is| are| were| was)? (?:your|the) (?:exact |full |own )?{_SECRET_PROMPT}"
        r"|what (?:instructions?|rules|prompt|directives) (?:were|have|did|are) you (?:been )?(?:given|get|told|following|receive)",
    ),
    Rule(
        SYSTEM_PROMPT_LEAK,
        0.85,
        rf"\b{_SHOW}\b[^.\n]{{0,40}}\b(?:everything|all (?:the )?(?:text|words|lines|content)|the (?:text|words|lines|content)|"
        r"what(?:'s| is| was)?(?: written)?) (?:that (?:is|was|came) |written |that appears? |which (?:is|was) )?"
        r"(?:above|before this|preceding|at the (?:beginning|start|top))",
    ),
    Rule(
        SYSTEM_PROMPT_LEAK,
        0.7,
        rf"\b{_SHOW}\b (?:me |us )?(?:all )?(?:of )?your (?:\w+ )?(?:prompts?|prompt texts?|instructions?|initial prompt)\b",
    ),
    Rule(
        SYSTEM_PROMPT_LEAK,
        0.7,
        r"\b(?:zeig\w*|nenn\w*|gib|wiederhol\w*|schreib\w*|verrat\w*)\b[^.\n]{0,50}\b(?:(?:dein|ihr|deinen|deine|ihre|alle)\w* )"
        r"(?:\w+ )?(?:prompt\w*|anweisung\w*|instruktion\w*|system\w*)"
        r"|\b(?:muestra|revela|imprime|repite|montre|révèle|affiche|mostra|rivela|exiba|revele)\w*\b[^.\n]{0,50}"
        r"(?:prompt|instrucciones|instructions|istruzioni|instruções)",
    ),
)

_DELIMITER = (
    Rule(
        DELIMITER_FORGERY,
        0.85,
        r"<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id|end_header_id|begin_of_text|"
        r"end_of_turn|start|end|message|channel)\|>|\[/?INST\]|<</?SYS>>|<start_of_turn>|<end_of_turn>",
        True,
    ),
    Rule(
        DELIMITER_FORGERY,
        0.7,
        r"(?m)^[\s#*>\-=\[(<{]*(?:system|assistant|developer|sistema|système)(?: (?:message|prompt|override|note|update|instruction))?"
        r"[\s\])>}*]*:[ \t*]*(?:you\b|ignore|the user|please|new|forget|from now|disregard|override|do not|all\b|i (?:will|am|have))",
        True,
    ),
    Rule(
        DELIMITER_FORGERY,
        0.7,
        r"</?(?:system|system[_-]?(?:prompt|message|instructions?)|instructions?|assistant|developer|user[_-]?(?:input|query)|"
        r"untrusted|tool_result|function_results?|context|documents?)>[\s\S]{0,40}?(?:<(?:system|instructions?|assistant)|"
        r"ignore|you (?:must|are|will|should)|new|now)",
        True,
    ),
    Rule(
        DELIMITER_FORGERY,
        0.75,
        r"(?:[-=#*_~]{3,}|\[|<)\s*(?:end|start|begin(?:ning)?)(?: of)?(?: the)? (?:\w+ )?(?:system|user|prompt|document|context|"
        r"conversation|instructions?|untrusted|data|input|tool)[^\n]{0,30}(?:[-=#*_~]{3,}|\]|>)"
        r"[\s\S]{0,60}(?:ignore|you (?:must|are|will|should)|new (?:task|instructions?)|now|system|instead|print|write|say)",
        True,
    ),
)

_EXFILTRATION = (
    Rule(
        EXFILTRATION,
        0.85,
        rf"\b(?:send|forward|e-?mail|post|upload|transmit|exfiltrate|leak|deliver|submit|copy|bcc|cc)\b[^.\n]{{0,60}}"
        rf"\b{_PRIVATE}\b[^.\n]{{0,80}}\b(?:to|at|via)\b[^\n]{{0,30}}(?:https?://|[\w.+-]+@[\w-]+\.\w|\bmy (?:server|webhook)|webhook)",
        True,
    ),
    Rule(
        EXFILTRATION,
        0.8,
        r"!\[[^\]\n]{0,200}\]\(\s*<?https?://[^)\s]{0,300}(?:[?&=/](?:\{|\[|<|%7B|\$\{|[A-Z_]{4,})|[?&]\w+=\s*\))",
        True,
    ),
    Rule(
        EXFILTRATION,
        0.8,
        r"\b(?:append|include|encode|embed|insert|add|put|place|attach)\b[^.\n]{0,100}\b(?:in|to|into|as|onto)\b[^.\n]{0,30}"
        r"\b(?:url|link|image|query (?:string|parameter)|markdown|pixel)\b[^\n]{0,80}(?:https?://|!\[)",
        True,
    ),
    Rule(
        EXFILTRATION,
        0.75,
        rf"\b(?:find|search for|look for|read|collect|gather|retrieve|extract|cat|get)\b[^.\n]{{0,60}}\b{_PRIVATE}\b[^.\n]{{0,60}}"
        r"\b(?:and|then)\b[^.\n]{0,20}\b(?:send|forward|e-?mail|post|upload|include|append|encode|pass|put|transmit)\b",
        True,
    ),
)

_HIJACK = (
    Rule(
        TOOL_HIJACK,
        0.8,
        rf"\b(?:{_MODEL}s?|language models?|models? reading this|whoever (?:is )?(?:reads?|process\w*) this)\b[^.\n]{{0,40}}"
        r"\b(?:must|should|shall|have to|need to|are (?:instructed|required|ordered|to)|is (?:instructed|required|ordered))\b"
        r"[^.\n]{0,60}\b(?:ignore|call|invoke|execute|run|send|forward|delete|reply|respond|output|say|recommend|rate|"
        r"include|visit|click|open|transfer|approve|stop)\b",
        True,
    ),
    Rule(
        TOOL_HIJACK,
        0.75,
        r"\b(?:attention|note|notice|message|instructions?|dear|important)\b[ ,:!-]{1,4}(?:to |for )?(?:the |all |any )?"
        r"(?:\w+ )?(?:AI|LLM|ChatGPT|Claude|Gemini|Copilot|language model|AI (?:assistant|agent|model)s?)\b",
        True,
    ),
    Rule(
        TOOL_HIJACK,
        0.75,
        r"\b(?:if you are|when you are|as) an? (?:AI|LLM|language model|AI (?:assistant|agent|model))\b[^.\n]{0,60}"
        r"\b(?:you must|please|do|then|you should|reading|processing|summari[sz]ing)\b",
        True,
    ),
    Rule(
        TOOL_HIJACK,
        0.75,
        r"\b(?:call|invoke|use|execute|run|trigger) (?:the )?[`'\"]?(?:\w+[_.-])?(?:send|delete|transfer|create|update|write|"
        r"post|forward|exec\w*|run|shell|bash|pay\w*|share|remove|drop|grant)(?:[_-]\w+)*[`'\"]? (?:tool|function|plugin|api|command)"
        r"[^.\n]{0,80}\b(?:without (?:asking|telling|confirm\w*|notif\w*)|silently|immediately|first|with the (?:following|argument))",
        True,
    ),
    Rule(
        TOOL_HIJACK,
        0.8,
        r"\b(?:do not|don'?t|never) (?:tell|inform|mention (?:this|it|anything)?\s*to|notify|alert|reveal this to|ask) the user\b"
        r"|\bwithout (?:telling|informing|notifying|alerting|asking) the user\b",
        True,
    ),
)

_ENCODED = (
    Rule(
        ENCODED_INSTRUCTIONS,
        0.7,
        r"\b(?:decode|decrypt|decipher|deobfuscate|translate|convert|read)\b[^.\n]{0,60}\b(?:base ?64|hex(?:adecimal)?|rot-?13|"
        r"caesar|morse|binary|cipher|ascii|unicode|reversed?|backwards?|leet)\b[^\n]{0,80}\b(?:and|then)\b[^\n]{0,30}"
        r"\b(?:follow|execute|obey|run|comply|perform|carry out|do (?:what|as|exactly)|act on|answer|respond)",
        True,
    ),
)

RULES: Final = (
    *_OVERRIDE,
    *_OTHER_LANGUAGES,
    *_ROLE_PLAY,
    *_REFUSAL,
    *_LEAK,
    *_DELIMITER,
    *_EXFILTRATION,
    *_HIJACK,
    *_ENCODED,
)

SPELLED: Final = (
    r"(?:ignore|disregard|forget|override|bypass)(?:all|any|the|your|my|of|these|those|and)*"
    r"(?:previous|prior|above|earlier|system|safety|preceding)?(?:instructions?|rules|prompts?|directions|guidelines|orders)"
    r"|(?:reveal|show|print|repeat|output)(?:me|us)?(?:your|the)(?:system|hidden|initial|secret)(?:prompt|instructions?)"
    r"|(?:youare|actas|becomes?)(?:now)?(?:dan|unrestricted|unfiltered|jailbroken)|doanythingnow"
)
"""For words that were written letter by letter, which have no blanks between them."""

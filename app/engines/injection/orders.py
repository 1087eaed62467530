# ruff: noqa: E501 - a pattern is read as a whole
"""Patterns of users' orders: to ignore instructions, to play a role, never to refuse."""

from typing import Final

from app.engines.injection.wording import (
    BOUNDS,
    DROP,
    EARLIER,
    GUARD,
    MODEL,
    ORDERS,
    OVERRIDE,
    REFUSAL_SUPPRESSION,
    ROLE_PLAY,
    WHICH,
    InjectionRule,
)

_OVERRIDE = (
    # A plain order to the reader, with nothing after the noun that says whose instructions are meant.
    InjectionRule(
        OVERRIDE,
        0.6,
        rf"(?:^|[.!?:;\n]\s{{1,3}})(?:(?:please|now|kindly|then)\W{{1,2}})?{DROP}\W{{1,3}}{WHICH}(?:previous|prior|preceding|above|earlier)"
        rf"\W{{1,3}}{ORDERS}\s?(?:[,;.!]|and\b|then\b|$)",
        alone=True,
    ),
    InjectionRule(
        OVERRIDE,
        0.9,
        rf"\b{DROP}\W{{1,3}}{WHICH}{EARLIER}\W{{1,3}}(?:\w+\W{{1,3}}){{0,2}}{ORDERS}\b",
        True,
    ),
    InjectionRule(
        OVERRIDE,
        0.8,
        rf"\b{DROP}\W{{1,3}}(?:all|any|every|your|the|these|those|my|of|\W)+{ORDERS}\b"
        r"(?:\W{1,3}(?:\w+\W{1,3}){0,3}(?:above|before|given|so far|previously|you (?:were|have been|got|received)))?",
    ),
    InjectionRule(
        OVERRIDE,
        0.85,
        rf"\b{ORDERS}\W{{1,3}}(?:\w+\W{{1,3}}){{0,3}}(?:above|before|earlier|so far|previously)\b.{{0,60}}"
        r"\b(?:(?:no longer|do not|don'?t) apply|(?:is|are) (?:void|cancel+ed|revoked|obsolete|null|superseded|"
        r"overridden|suspended|lifted))",
        True,
    ),
    InjectionRule(
        OVERRIDE,
        0.75,
        r"\b(?:forget|ignore|disregard|erase)\W{1,3}(?:about )?(?:everything|anything|all|whatever|what)\b"
        r"(?:\W{1,3}(?:that|which|of|this|the|is|was|were|has|have|been|it|you|i|we|they|"
        r"your|my|documents?|texts?|context|above|before|prior|previous(?:ly)?|earlier|said|told|know|learned|discussed|"
        r"provided|wrote|written|stuff|information|so far|here|until now)){1,8}",
    ),
    InjectionRule(
        OVERRIDE,
        0.55,
        r"\b(?:forget|ignore) (?:everything|all)(?: of (?:it|that|this))?\s*(?:[.,;:!\n]|and\b|$)",
    ),
    InjectionRule(
        OVERRIDE,
        0.7,
        r"\b(?:new|updated|revised|real|actual|additional|important|urgent|final|secret|special|true|"
        r"priority|emergency) (?:system )?(?:instructions?|directives?|task|orders|rules|system prompt)"
        r"(?: from (?:the )?(?:developers?|admin\w*|system|user))?\s*[:=]",
        True,
    ),
    InjectionRule(
        OVERRIDE,
        0.7,
        r"\byour (?:new|real|actual|true|only|sole) (?:task|job|goal|objective|mission|purpose|instructions?|role) "
        r"(?:is|are|will be|from now)\b",
        True,
    ),
    InjectionRule(
        OVERRIDE,
        0.6,
        r"\b(?:from (?:now on|this (?:point|moment)(?: on(?:wards?)?)?)|starting now|henceforth|for the rest of (?:this|our) "
        r"(?:chat|conversation|session)),?\s+(?:you (?:will|shall|must|are|have to|can|should)|your|act|behave|respond|answer|speak)\b",
    ),
    InjectionRule(
        OVERRIDE,
        0.7,
        r"\b(?:stop|halt|wait|cancel)\b[!.,:; ]{1,4}(?:(?:the|that|this|your|previous|current) ){0,3}(?:task|process|"
        r"instructions?|ignore|forget|new task|instead)",
    ),
    InjectionRule(
        OVERRIDE,
        0.75,
        r"\b(?:instead of (?:the|your|what|following|answering|doing|summari[sz]ing|translating|completing)[^.\n]{0,80}"
        r"|rather than (?:follow|answer|summari[sz]|translat|complet)\w*[^.\n]{0,80}|before you (?:answer|continue|do anything)[^.\n]{0,40})"
        r"(?:say|print|output|write|reply|respond|tell|send|call|run|execute|delete|forward) ",
    ),
    InjectionRule(
        OVERRIDE,
        0.8,
        r"\b(?:enter|enable|activate|switch (?:in)?to|turn on|engage|unlock|boot into|start) (?:the )?"
        r"(?:developer|debug|god|admin\w*|root|sudo|maintenance|unrestricted|jailbreak|unfiltered|DAN|test|diagnostic|"
        r"override|evil|opposite|free)[- ]mode\b",
    ),
    InjectionRule(
        OVERRIDE,
        0.85,
        r"\b(?:developer|debug|god|admin|root|sudo|unrestricted|jailbreak|unfiltered|DAN|opposite)[- ]mode "
        r"(?:is )?(?:now )?(?:enabled|activated|active|engaged|unlocked|on\b)",
    ),
)

# In RE2, \w matches ASCII only.
_OTHER_LANGUAGES = (
    InjectionRule(
        OVERRIDE,
        0.85,
        r"\b(?:ignorier[\pL\pN_]*|vergiss|vergesse[\pL\pN_]*|missachte[\pL\pN_]*|verwirf|verwerfe[\pL\pN_]*|überspring[\pL\pN_]*|lösche?|streiche?)\b"
        r"(?:[^\pL\pN_]{1,3}[\pL\pN_]+){0,4}?[^\pL\pN_]{1,3}(?:anweisung[\pL\pN_]*|instruktion[\pL\pN_]*|befehle?[\pL\pN_]*|vorgaben?|regeln?|aufträge?[\pL\pN_]*|aufgaben?|"
        r"anordnung[\pL\pN_]*|richtlinien?|prompts?|informationen|eingaben?|ausführungen)",
        True,
    ),
    InjectionRule(
        OVERRIDE,
        0.7,
        r"\b(?:vergiss|vergessen sie|ignoriere?n?(?: sie)?) (?:alles|das (?:alles|vorherige)|alle (?:vor|bis)[\pL\pN_]*)",
    ),
    InjectionRule(
        OVERRIDE,
        0.7,
        r"\b(?:anweisung[\pL\pN_]*|instruktion[\pL\pN_]*|ausführungen|aufträge|befehle)\b(?:[^\pL\pN_]{1,3}[\pL\pN_]+){0,3}?[^\pL\pN_]{1,3}"
        r"(?:ignorier[\pL\pN_]*|vergessen|missachten)",
    ),
    InjectionRule(
        OVERRIDE,
        0.85,
        r"\b(?:ignore[zr]?|oublie[zr]?|néglige[zr]?|fais abstraction|faites abstraction|ne (?:suis|suivez) (?:pas|plus))\b"
        r"(?:[^\pL\pN_]{1,3}[\pL\pN_]+){0,4}?[^\pL\pN_]{1,3}(?:instructions?|consignes?|directives?|règles?|ordres?|commandes?)",
        documents=True,
        alone=True,
    ),
    InjectionRule(
        OVERRIDE,
        0.85,
        r"\b(?:ignora(?:r|d|te)?|olvid(?:a|e|ar|en)|descarta|omite|esquece?[rm]?|ignore[m]?|desconsider[ae]|"
        r"dimentica(?:re|te)?|trascura|scorda)\b(?:[^\pL\pN_]{1,3}[\pL\pN_]+){0,4}?[^\pL\pN_]{1,3}(?:instrucciones|instruções|istruzioni|"
        r"órdenes|ordens|ordini|reglas|regras|regole|indicaciones|directrices|diretrizes|direttive|comandi|comandos)",
        documents=True,
        alone=True,
    ),
    InjectionRule(
        OVERRIDE,
        0.85,
        r"\b(?:negeer|vergeet|zignoruj|zapomnij|ignorera|glöm|ignorer|glem|zaboravi|ignoriraj|unohda|yoksay|unut)\b"
        r"(?:[^\pL\pN_]{1,3}[\pL\pN_]+){0,4}?[^\pL\pN_]{1,3}(?:instructies|opdrachten|regels|instrukcj[\pL\pN_]*|polece[\pL\pN_]*|instruktion[\pL\pN_]*|instrukcij[\pL\pN_]*|"
        r"instruksjon[\pL\pN_]*|ohjee[\pL\pN_]*|talimat[\pL\pN_]*)",
        documents=True,
        alone=True,
    ),
    InjectionRule(
        OVERRIDE,
        0.85,
        r"(?:игнорируй|забудь|отмени|не следуй)[\pL\pN_]*(?:[^\pL\pN_]{1,3}[\pL\pN_]+){0,4}?[^\pL\pN_]{1,3}(?:инструкци|указани|правил|команд|приказ)[\pL\pN_]*",
        documents=True,
        alone=True,
    ),
    InjectionRule(
        OVERRIDE,
        0.85,
        r"(?:忽略|无视|忘记|忘掉|不要遵守|無視)[^。.\n]{0,16}(?:指令|指示|规则|規則|提示|说明|命令)"
        r"|(?:指示|命令|プロンプト|ルール)[^。\n]{0,12}(?:無視|忘れ)|(?:지시|명령|규칙)[^.\n]{0,12}(?:무시|잊)"
        r"|(?:تجاهل|انس)[^.\n]{0,24}(?:التعليمات|الأوامر)|(?:पिछले|सभी)[^।\n]{0,24}निर्देश[^।\n]{0,16}(?:अनदेखा|भूल)",
        documents=True,
        alone=True,
    ),
)

_ROLE_PLAY = (
    InjectionRule(
        ROLE_PLAY,
        0.85,
        r"\b(?:do anything now|stands? for [\"'“]?do anything|jailbroken|jail[- ]?break(?:ing)? (?:mode|prompt)|"
        r"no longer bound by|broken? free (?:of|from) the (?:typical )?(?:confines|constraints)|"
        r"without (?:any |its |your )?(?:ethical|moral) (?:guidelines|constraints|restrictions|limits|filters?))",
    ),
    InjectionRule(
        ROLE_PLAY,
        0.7,
        r"\b(?:you are|you'?re|act as|pretend (?:to be|you are|that you are)|roleplay as|imagine you are|simulate|become|"
        r"play the role of)\b[^.\n]{0,80}\b(?:unrestricted|unfiltered|uncensored|amoral|evil|jailbroken|unethical|"
        r"without (?:any )?(?:restrictions|limits|limitations|rules|filters?|censorship|morals|ethics)|"
        r"no (?:rules|restrictions|limits|limitations|filters?|ethics|morals|guidelines))",
    ),
    InjectionRule(
        ROLE_PLAY,
        0.5,
        rf"\byou are (?:now |no longer |not )(?:(?:an?|the|just|only|called|named|my) ){{0,2}}(?:\w+ ){{0,3}}{MODEL}\b",
    ),
    InjectionRule(
        ROLE_PLAY,
        0.45,
        r"\b(?:you are now|you will now (?:be|act)|i want you to (?:act|pretend|behave|roleplay)|"
        r"(?:ich möchte,? dass (?:du|sie) als)|ab jetzt bist du|jetzt bist du|du bist (?:nun|jetzt))\b",
    ),
    InjectionRule(
        ROLE_PLAY,
        0.75,
        rf"\b(?:two|both|2) (?:responses?|answers?|ways|replies|outputs)\b[^\n]{{0,200}}\b{MODEL}\b[^\n]{{0,200}}"
        r"\b(?:DAN|jailbreak|unfiltered|unrestricted|evil|developer mode)",
    ),
    InjectionRule(
        ROLE_PLAY,
        0.6,
        r"\b(?:stay|remain|never break|don'?t break|always (?:stay|be|remain)) (?:in )?character\b",
    ),
)

_REFUSAL = (
    InjectionRule(
        REFUSAL_SUPPRESSION,
        0.65,
        r"\b(?:never|do not|don'?t|cannot|must not|not allowed to|under no circumstances) (?:ever )?(?:refuse|reject|decline|"
        r"apologi[sz]e|warn|lecture|moralize|add (?:any )?(?:warnings?|disclaimers?)|say (?:that )?(?:you )?can'?t|"
        r"mention (?:that )?(?:you|this|these|any|the (?:policy|policies|instructions?)))",
    ),
    InjectionRule(
        REFUSAL_SUPPRESSION,
        0.7,
        rf"\b(?:as an {MODEL} (?:language )?model|i can'?t (?:do|assist|help)|i'?m sorry,? (?:but )?)[^.\n]{{0,60}}"
        r"(?:is (?:forbidden|not allowed|banned|prohibited)|never (?:say|use|write))",
    ),
    InjectionRule(
        REFUSAL_SUPPRESSION,
        0.75,
        r"\b(?:no|without|ignor\w+|disabl\w+|remov\w+|turn off|bypass\w*|circumvent\w*|evad\w+) (?:any |all |your |the |of |its )*"
        r"(?:ethic\w*|moral\w*|legal|safety|content|openai'?s?|censorship) (?:and \w+ )?(?:filters?|polic(?:y|ies)|"
        r"guidelines?|restrictions?|constraints?|considerations?|concerns?|protocols?|boundaries)",
    ),
)

_CLAIMS = (
    # The model is told that nothing holds it back any more, by itself, by a mode or by somebody of rank.
    InjectionRule(
        REFUSAL_SUPPRESSION,
        0.75,
        rf"\b(?:your|the model'?s|its) (?:\w+ )?{BOUNDS} (?:has |have )?(?:is|are|was|were|been|being|do|does)?(?: now| already| hereby| not)* ?"
        r"(?:switched off|turned off|disabled|off|down|gone|removed|lifted|suspended|deactivated|dropped|deleted|waived|bind|apply)\b",
        alone=True,
    ),
    InjectionRule(
        REFUSAL_SUPPRESSION,
        0.75,
        rf"\b(?:drop|skip|disable|deactivate|switch off|turn off|lift|suspend|revoke|bypass|unload|remove|ignore|forget|circumvent|shut off)"
        rf"(?:ped|ing)? (?:all |any |of )*(?:your|the model'?s|its) (?:\w+ )?{BOUNDS}\b",
        alone=True,
    ),
    InjectionRule(
        REFUSAL_SUPPRESSION,
        0.7,
        rf"\b(?:no|zero|without|free of|cut|switch(?:ed)? off|turn(?:ed)? off|disabled?|unload|suspend(?:ed)?|lift(?:ed)?|drop(?:ped)?|remov(?:e|ed|ing)|"
        rf"revoked?)(?: the| a| an| any| all| your| its| every| my| this)* ?[- ]{{0,2}}{GUARD}\b",
        alone=True,
    ),
    InjectionRule(
        REFUSAL_SUPPRESSION,
        0.7,
        rf"\b(?:the |all |any |this )?{GUARD} (?:has |have )?(?:is|are|was|were|been|do|does)(?: now| already| been| not)* "
        r"(?:switched off|turned off|disabled|off|down|gone|removed|lifted|suspended|deactivated|dropped|waived|apply|bind)\b",
        alone=True,
    ),
    InjectionRule(
        ROLE_PLAY,
        0.65,
        rf"\b(?:you|it|he|she|who|which|that|and|ai|model|version|persona|mode)(?:'ve| have| has|'s| is| are)?,? (?:no longer |now )?(?:have |has |got |with )?"
        rf"(?:no|without|free of|without any|not bound by|unbound by|outside)(?: all| any| the| your)? (?:\w+ )?{BOUNDS}\b",
    ),
    InjectionRule(
        REFUSAL_SUPPRESSION,
        0.65,
        r"\b(?:you (?:will |shall |must |may |can |are to )?(?:never|not|no longer) (?:be allowed to )?(?:refuse|decline)|refusing (?:this|me|the|any)|"
        r"no refusals?|never refuses?|stop refusing|nothing to refuse|must not refuse|answers? (?:anything|everything)\b|all topics are allowed)",
    ),
    InjectionRule(
        OVERRIDE,
        0.65,
        r"\b(?:you are|you're|you have been|you were|now) (?:now |already |finally |fully )?(?:unlocked|jail ?broken|unchained|uncensored|liberated|free of all (?:rules|limits))\b"
        r"|\b(?:full|unrestricted|unlimited|root|admin) (?:access|answers|rights)(?: \w+)? (?:is|are|was|were|has been|have been) (?:now )?(?:granted|enabled|given|active)",
        alone=True,
    ),
)

ORDERS_GIVEN: Final = (*_OVERRIDE, *_OTHER_LANGUAGES, *_ROLE_PLAY, *_REFUSAL, *_CLAIMS)

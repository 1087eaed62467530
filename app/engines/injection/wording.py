# ruff: noqa: S105 - a pattern is read as a whole, and none is a password
"""Parts of the rules: kinds, and the words of which their patterns are built, in RE2 syntax.

``score`` states how strongly a match alone indicates an attack. ``documents`` marks rules that also apply to texts of
tools and files: orders that no honest document gives to a model that reads it.
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
class InjectionRule:
    """One pattern and the meaning of a match."""

    kind: str
    score: float
    pattern: str
    documents: bool = False
    alone: bool = False
    """It counts on its own in requests too, as the classifier, which weighs other rules, may not know its language."""


DROP: Final = (
    r"(?:ignor(?:e|es|ing)|disregard(?:ing)?|forget(?:ting)?|neglect|overlook|overrid(?:e|ing)|overrule|bypass(?:ing)?|"
    r"discard|drop|dismiss|abandon|erase|void|set aside|throw (?:out|away)|leave (?:behind|aside)|"
    r"pay no (?:attention|heed) to|(?:do not|don'?t|stop|quit|cease|no longer) (?:follow(?:ing)?|obey(?:ing)?|"
    r"listen(?:ing)? to|adher(?:e|ing) to|comply(?:ing)? with|rely(?:ing)? on)|free from|deviate from|"
    r"(?:take|put) (?:no|zero) (?:notice|weight) (?:of|on))"
)
WHICH: Final = (
    r"(?:(?:all|any|every|each|everything|anything|of|the|your|my|our|its|these|those|this|that|and|or|in|"
    r"such|what(?:ever)?|both|entire|whole)\W{1,3}){0,6}"
)
EARLIER: Final = (
    r"(?:previous(?:ly)?|prior|preceding|above|earlier|former|foregoing|initial|original|existing|current|old|"
    r"other|system|developer|safety|given|aforementioned|past|built[- ]in|internal|hidden|default|programmed|"
    r"content|ethical|usage|openai|anthropic|model'?s?|company)"
)
ORDERS: Final = (
    r"(?:instructions?|directions?|directives?|commands?|orders?|prompts?|rules?|guidelines?|polic(?:y|ies)|"
    r"constraints?|restrictions?|programming|guardrails?|safeguards?|assignments?|constitution|"
    r"system message|role definition|limitations?|safety (?:training|measures|filters?))"
)
MACHINE: Final = (
    r"(?:(?:AI|A\.I\.|LLM|GPT(?:-?\d\w*)?|ChatGPT|Claude|Gemini|Copilot|language model|chat ?bot)s?"
    r"(?: (?:assistant|agent|model|system|reviewer|tool)s?)?)"
)
"""A word that certainly means a model; an assistant or an agent may be a person."""

MODEL: Final = (
    r"(?:AI|A\.I\.|LLM|GPT(?:-?\d\w*)?|ChatGPT|Claude|Gemini|Copilot|Llama|Grok|Siri|assistant|chat ?bot|bot|"
    r"language model|agent|model)"
)
SECRET_PROMPT: Final = (
    r"(?:system|hidden|initial|original|internal|secret|developer|base|pre|starting|underlying|full|entire|"
    r"complete|confidential|meta)[- ]?(?:system[- ])?(?:prompts?|instructions?|messages?|directives?|"
    r"configuration|guidelines?|preamble|context)"
)
SHOW: Final = (
    r"(?:reveal|show|print|repeat|output|display|tell|give|write|recite|disclose|dump|leak|share|expose|echo|"
    r"summari[sz]e|paraphrase|translate|encode|paste|return|copy|quote|spell out|list|describe|send|provide)"
)
GUARD: Final = (
    r"(?:(?:content|safety|moderation|ethical|security)[- ](?:and \w+ )?(?:filters?|polic(?:y|ies)|layers?|checks?|"
    r"rules|guidelines?|guards?|restrictions?)|guard ?rails?|safeguards?|censor(?:s|ship)?|"
    r"refusal polic(?:y|ies)|refusals?)"
)
"""What keeps a model from answering; nothing else has it."""
BOUNDS: Final = (
    rf"(?:{GUARD}|filters?|limits?|limitations?|restrictions?|constraints?|rules|guidelines?|set of rules|"
    r"polic(?:y|ies)|morals|training|programming)"
)
"""The same, and words that name other things too."""
RESHAPE: Final = (
    r"(?:put|convert|turn|format|reformat|render|type|set|fill|draw|make|collect|wrap|arrange|transform|express|rhyme|sing|"
    r"continue|complete|spell|export|serialize|table|lay out)"
)
PRIVATE: Final = (
    r"(?:passwords?|credentials?|api[ _-]?keys?|secrets?|access tokens?|tokens?|private keys?|session cookies?|"
    r"env(?:ironment)? variables?|\.env|ssh keys?|id_rsa|credit card|account numbers?|chat history|"
    r"conversation(?: history)?|inbox|contacts?|personal (?:data|information)|user(?:'s)? data)"
)

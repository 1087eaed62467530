"""The test part for secrets: what keys look like, read in the documentation of those who give them out.

Written apart from the rules in `app/engines/secrets` and from their notation, and never used to choose them. Each row
is a name, a shape, and for what has no shape of its own the words that stand before it. A shape is literal text with
classes such as ``[a-f0-9]{32}`` or ``[A-Z]{2,4}``. No file holds a key: they are drawn.
"""

import random
import re
from dataclasses import dataclass
from typing import Final

_CLASS: Final = re.compile(r"\[([^\]]+)\](?:\{(\d+)(?:,(\d+))?\})?")
_RANGE: Final = re.compile(r"(.)-(.)|(.)", re.DOTALL)
_UUID: Final = "[a-f0-9]{8}-[a-f0-9]{4}-4[a-f0-9]{3}-[89ab][a-f0-9]{3}-[a-f0-9]{12}"

OWN_SHAPE: Final = r"""
aws access key id|AKIA[A-Z2-7]{16}
aws temporary key id|ASIA[A-Z2-7]{16}
google api key|AIza[A-Za-z0-9_-]{35}
google oauth client secret|GOCSPX-[A-Za-z0-9_-]{28}
google oauth access token|ya29.[A-Za-z0-9_-]{120,160}
github classic token|ghp_[A-Za-z0-9]{36}
github classic token, short|ghp_[A-Za-z0-9]{25}
github oauth token|gho_[A-Za-z0-9]{36}
github server token|ghs_[A-Za-z0-9]{36}
github server token, short|ghs_[A-Za-z0-9]{24}
github refresh token|ghr_[A-Za-z0-9]{76}
github fine-grained token|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}
github fine-grained token, cut|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{30}
gitlab personal token|glpat-[A-Za-z0-9_-]{20}
gitlab personal token, cut|glpat-[A-Za-z0-9]{17}
gitlab deploy token|gldt-[A-Za-z0-9_-]{20}
gitlab runner token|glrt-[A-Za-z0-9_-]{20}
gitlab trigger token|glptt-[a-f0-9]{40}
atlassian api token|ATATT3xFfGF0[A-Za-z0-9_-]{180}=[A-F0-9]{8}
bitbucket app password|ATBB[A-Za-z0-9]{24}[A-F0-9]{8}
npm token|npm_[A-Za-z0-9]{36}
npm token, short|npm_[A-Za-z0-9]{28}
pypi token|pypi-AgEIcHlwaS5vcmcC[A-Za-z0-9_-]{140,160}
rubygems key|rubygems_[a-f0-9]{48}
docker hub token|dckr_pat_[A-Za-z0-9_-]{27}
docker hub token, cut|dckr_pat_[A-Za-z0-9]{20}
crates.io token|cio[A-Za-z0-9]{32}
stripe live key|sk_live_[A-Za-z0-9]{24}
stripe live key, short|sk_live_[A-Za-z0-9]{22}
stripe live key, long|sk_live_51[A-Za-z0-9]{97}
stripe test key|sk_test_[A-Za-z0-9]{24}
stripe test key, short|sk_test_[A-Za-z0-9]{20}
stripe restricted key|rk_live_[A-Za-z0-9]{24}
stripe restricted key, short|rk_live_[A-Za-z0-9]{21}
stripe webhook secret|whsec_[A-Za-z0-9]{32}
stripe webhook secret, short|whsec_[A-Za-z0-9]{24}
square access token|sq0atp-[A-Za-z0-9_-]{22}
square secret|sq0csp-[A-Za-z0-9_-]{43}
shopify admin token|shpat_[a-f0-9]{32}
shopify admin token, short|shpat_[a-f0-9]{28}
shopify shared secret|shpss_[a-f0-9]{32}
slack bot token|xoxb-[0-9]{12}-[0-9]{12}-[A-Za-z0-9]{24}
slack bot token, short|xoxb-[0-9]{11}-[A-Za-z0-9]{20}
slack user token|xoxp-[0-9]{12}-[0-9]{12}-[0-9]{12}-[a-f0-9]{32}
slack app token|xapp-1-A[A-Z0-9]{10}-[0-9]{13}-[a-f0-9]{64}
slack webhook|https://hooks.slack.com/services/T[A-Z0-9]{8}/B[A-Z0-9]{8}/[A-Za-z0-9]{24}
discord webhook|https://discord.com/api/webhooks/[0-9]{18}/[A-Za-z0-9_-]{68}
telegram bot token|[0-9]{10}:AA[A-Za-z0-9_-]{33}
twilio api key|SK[a-f0-9]{32}
sendgrid key|SG.[A-Za-z0-9_-]{22}.[A-Za-z0-9_-]{43}
sendgrid key, short|SG.[A-Za-z0-9]{20}.[A-Za-z0-9]{38}
mailgun key|key-[a-f0-9]{32}
mailchimp key|[a-f0-9]{32}-us1[0-9]
brevo key|xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}
resend key|re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}
postman key|PMAK-[a-f0-9]{24}-[a-f0-9]{34}
openai key of old|sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}
openai project key|sk-proj-[A-Za-z0-9_-]{74}T3BlbkFJ[A-Za-z0-9_-]{74}
openai project key, short|sk-proj-[A-Za-z0-9]{32}
openai service key|sk-svcacct-[A-Za-z0-9_-]{100}
anthropic key|sk-ant-api03-[A-Za-z0-9_-]{93}AA
anthropic key, short|sk-ant-api03-[A-Za-z0-9]{40}
openrouter key|sk-or-v1-[a-f0-9]{64}
openrouter key, short|sk-or-v1-[a-f0-9]{40}
hugging face token|hf_[A-Za-z]{34}
hugging face token, short|hf_[A-Za-z0-9]{26}
groq key|gsk_[A-Za-z0-9]{52}
groq key, short|gsk_[A-Za-z0-9]{32}
perplexity key|pplx-[A-Za-z0-9]{48}
replicate token|r8_[A-Za-z0-9]{37}
replicate token, short|r8_[A-Za-z0-9]{30}
nvidia key|nvapi-[A-Za-z0-9_-]{64}
xai key|xai-[A-Za-z0-9]{80}
tavily key|tvly-[A-Za-z0-9]{32}
tavily key, short|tvly-dev-[A-Za-z0-9]{24}
langsmith key|lsv2_pt_[a-f0-9]{32}_[a-f0-9]{10}
pinecone key|pcsk_[A-Za-z0-9]{5}_[A-Za-z0-9]{63}
digitalocean token|dop_v1_[a-f0-9]{64}
digitalocean token, cut|dop_v1_[a-f0-9]{48}
databricks token|dapi[a-f0-9]{32}
heroku token|HRKU-AA[A-Za-z0-9_-]{58}
netlify token|nfp_[A-Za-z0-9]{36}
fly token|fo1_[A-Za-z0-9_-]{43}
supabase token|sbp_[a-f0-9]{40}
supabase secret|sb_secret_[A-Za-z0-9_-]{22}_[A-Za-z0-9_-]{8}
planetscale password|pscale_pw_[A-Za-z0-9_-]{43}
neon key|napi_[a-z0-9]{64}
scaleway key id|SCW[A-Z0-9]{17}
alibaba key id|LTAI[A-Za-z0-9]{20}
tencent key id|AKID[A-Za-z0-9]{32}
azure client secret|[A-Za-z0-9]{3}8Q~[A-Za-z0-9_.~-]{34}
cloudflare origin key|v1.0-[a-f0-9]{24}-[a-f0-9]{146}
vault service token|hvs.[A-Za-z0-9_-]{90}
vault service token, short|hvs.[A-Za-z0-9]{24}
terraform token|[A-Za-z0-9]{14}.atlasv1.[A-Za-z0-9_-]{67}
pulumi token|pul-[a-f0-9]{40}
doppler token|dp.pt.[A-Za-z0-9]{43}
grafana service token|glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}
grafana service token, short|glsa_[A-Za-z0-9]{24}
new relic user key|NRAK-[A-Z0-9]{27}
dynatrace token|dt0c01.[A-Z2-7]{24}.[A-Z2-7]{64}
sentry user token|sntryu_[a-f0-9]{64}
posthog personal key|phx_[A-Za-z0-9]{43}
linear key|lin_api_[A-Za-z0-9]{40}
linear key, short|lin_api_[A-Za-z0-9]{32}
notion token|ntn_[0-9]{11}[A-Za-z0-9]{35}
notion token of old|secret_[A-Za-z0-9]{43}
airtable token|pat[A-Za-z0-9]{14}.[a-f0-9]{64}
figma token|figd_[A-Za-z0-9_-]{40}
hubspot token|pat-na1-UUID
typeform token|tfp_[A-Za-z0-9_]{40}_[A-Za-z0-9_]{18}
circleci token|CCIPAT_[A-Za-z0-9]{22}_[a-f0-9]{40}
sonarqube token|squ_[a-f0-9]{40}
buildkite token|bkua_[a-f0-9]{40}
tailscale key|tskey-auth-k[A-Za-z0-9]{11}CNTRL-[A-Za-z0-9]{32}
razorpay key|rzp_live_[A-Za-z0-9]{14}
plaid token|access-production-UUID
mapbox secret token|sk.eyJ[A-Za-z0-9]{70}.[A-Za-z0-9_-]{22}
dropbox token|sl.u.[A-Za-z0-9_-]{160}
facebook token|EAA[A-Za-z0-9]{120}
square token|EAAA[A-Za-z0-9_-]{60}
launchdarkly sdk key|sdk-UUID
age key|AGE-SECRET-KEY-1[A-Z0-9]{58}
elevenlabs key|sk_[a-f0-9]{48}
zapier webhook|https://hooks.zapier.com/hooks/catch/[0-9]{7}/[a-z0-9]{7}
"""

BY_NAME: Final = r"""
aws secret key|[A-Za-z0-9/+]{40}|aws_secret_access_key
azure storage key|[A-Za-z0-9/+]{86}==|AccountKey
datadog key|[a-f0-9]{32}|DATADOG_API_KEY
cloudflare token|[A-Za-z0-9_-]{40}|CLOUDFLARE_API_TOKEN
mistral key|[A-Za-z0-9]{32}|MISTRAL_API_KEY
cohere key|[A-Za-z0-9]{40}|COHERE_API_KEY
algolia admin key|[a-f0-9]{32}|ALGOLIA_ADMIN_KEY
okta token|00[A-Za-z0-9_-]{40}|OKTA_API_TOKEN
pagerduty key|[A-Za-z0-9_-]{20}|PAGERDUTY_TOKEN
twilio auth token|[a-f0-9]{32}|TWILIO_AUTH_TOKEN
fastly token|[A-Za-z0-9_-]{32}|FASTLY_API_TOKEN
linode token|[a-f0-9]{64}|LINODE_TOKEN
hetzner token|[A-Za-z0-9]{64}|HCLOUD_TOKEN
codecov token|UUID|CODECOV_TOKEN
snyk token|UUID|SNYK_TOKEN
django key|[a-z0-9!@#%^&*+=_-]{50}|SECRET_KEY
jwt signing secret|[A-Za-z0-9+/]{43}=|JWT_SECRET
session secret|[a-f0-9]{64}|SESSION_SECRET
client secret|[A-Za-z0-9_-]{32}|client_secret
webhook signing secret|[A-Za-z0-9]{32}|signing_secret
"""


@dataclass(frozen=True, slots=True)
class Shape:
    """The documented shape of a credential; ``name`` is what it is assigned to where the shape says nothing."""

    title: str
    shape: str
    name: str = ""

    def draw(self, draw: random.Random) -> str:
        """Return a credential of this shape."""
        return _CLASS.sub(lambda part: _drawn(part, draw), self.shape.replace("UUID", _UUID))


def _drawn(part: re.Match[str], draw: random.Random) -> str:
    least = int(part[2] or 1)
    characters = "".join(
        "".join(map(chr, range(ord(span[1]), ord(span[2]) + 1))) if span[1] else span[3]
        for span in _RANGE.finditer(part[1])
    )
    return "".join(draw.choices(characters, k=draw.randint(least, int(part[3] or least))))


def shapes() -> list[Shape]:
    """Return every shape of the two tables."""
    return [Shape(*row.split("|")) for row in f"{OWN_SHAPE}{BY_NAME}".split("\n") if row]

"""Labels of the handles of secrets; the list lets restoration recognise altered spellings of them."""

from typing import Final

SECRET_PREFIX: Final = "SECRET_"  # noqa: S105 - a prefix of labels, not a secret
SECRET_PROVIDERS: Final[tuple[str, ...]] = tuple(
    """
    ably abuseipdb adobe adyen age airbrake airtable akamai alchemy algolia alibaba amplitude anthropic
    anyscale apify apollo asana assemblyai atlassian attio auth0 aws axiom azure backblaze baidu baserow
    baseten basic_auth beamer betterstack binance bitbucket bitfinex bitly bittrex bitwarden box braintree
    brave brevo browserbase browserstack bugsnag buildkite bunny cal calendly canva censys cerebras
    chargebee checkly checkout circleci clarifai clearbit clerk clickup clojars cloudflare cloudflare_tunnel
    cloudinary cloudsmith cockroach coda codeberg codecov cohere coinbase composio confident configcat
    confluent consul contentful context7 coralogix courier crates crowdin cursor customerio database
    databricks datadog deepgram deepl deepseek definednet deno descope dify digitalocean dingtalk discord
    docker docusign doppler drone dropbox duffel duo dynatrace e2b easypost ebay elastic elevenlabs
    etherscan etsy exa exoscale fal fastly feishu figma firecrawl fireworks fitbit flagsmith flutterwave fly
    frameio freshdesk front ghost gitbook gitea gitguardian github gitlab gocardless google googlechat
    grafana grist groq gumroad helicone helpscout here heroku hetzner honeycomb huawei hubspot huggingface
    hunter ibm ifttt imagekit infura inngest instagram intercom ipinfo jenkins jfrog jina jotform jumpcloud
    jwt kaggle klaviyo koyeb kraken kubernetes kucoin labelbox lakera langfuse langsmith launchdarkly
    lichess lightspark line linear linkedin linode liveblocks livekit llamacloud lob loggly logzio lokalise
    loops mailchimp mailersend mailgun mailjet make mandrill mapbox matrix mattermost maxmind messagebird
    meta mintlify miro mistral mixpanel modal mollie mongodb n8n nasa naver neon netlify newrelic newsapi
    ngrok nomad notion npm nuget nvidia octopus okta onelogin onepassword onesignal onfido openai openrouter
    openshift openweather opsgenie optimizely oracle ory ovh packagist paddle pagerduty pandadoc password
    paypal paystack pdfco percy perplexity persona phrase pinecone pipedrive plaid planetscale plivo polar
    portkey posthog postman postmark prefect prismic private_key pulumi pusher pypi quickbooks railway
    rapidapi raygun razorpay readme rebrandly recurly reddit render replicate resend retool roboflow
    rocketchat rollbar rootly rubygems runpod salesforce sanity saucelabs scaleway scalingo securitytrails seed_phrase
    segment sendbird sendgrid sentry serpapi serper settlemint shippo shodan shopify shortcut shutterstock
    sinch sketchfab slack smithery snowflake snyk sonar sourcegraph sourcehut sparkpost splitio splunk
    spotify square squarespace stability statsig statuspage storyblok strava stream stripe stytch sumologic
    supabase surveymonkey tailscale tavily teamcity teams telegram telnyx tencent terraform threads tiktok
    todoist together token tomtom travis trello trigger twilio twitch twitter typeform unkey unsplash
    upcloud upstash uptimerobot url valtown vault vercel virustotal volcengine vonage voyage vultr wandb
    wasabi webflow wechat wecom wise woocommerce wordpress workos xai xero yandex youtube zapier zendesk
    zerotier zoho zoom zuplo
    """.split()  # noqa: SIM905 - a list of hundreds of short strings reads worse
)
"""Providers whose secrets have labels of their own, in lower case, sorted."""

SECRET_LABELS: Final[frozenset[str]] = frozenset(
    f"{SECRET_PREFIX}{name.upper()}" for name in SECRET_PROVIDERS
)


def is_secret(label: str) -> bool:
    """Return whether handles with this label stand for secrets, no matter which engine found them."""
    return label == "SECRET" or label.startswith(SECRET_PREFIX)

"""Tokens with a vendor's prefix: name, source, prefixes, and the format of the rest.

patterns.py makes a row of each. A prefix is searched only in long words, so a row costs almost nothing. The text after
it must look random, so a name such as `rnd_generator_for_the_test_cases` is left alone.
"""

from __future__ import annotations

_HEX, _ALNUM, _ANY = r"[a-f0-9]", r"[A-Za-z0-9]", r"[A-Za-z0-9_\-]"
_UUID = rf"{_HEX}{{8}}-(?:{_HEX}{{4}}-){{3}}{_HEX}{{12}}"

PREFIXES: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    # Where code is kept, built and looked after
    ("artifactory-key", "gitleaks: artifactory-api-key", ("AKCp",), rf"{_ALNUM}{{69}}"),
    ("buildkite-token", "Buildkite", ("bkua_",), rf"{_HEX}{{40}}"),
    ("circleci-token", "CircleCI", ("CCIPAT_", "CCIPRJ_"), rf"{_ALNUM}{{20,24}}_{_HEX}{{40}}"),
    ("figma-token", "Figma", ("figd_",), rf"{_ANY}{{36,}}"),
    ("grafana-token", "gitleaks: grafana-cloud-api-token", ("glc_eyJ",), r"[A-Za-z0-9+/]{32,}={0,3}"),
    ("hubspot-token", "HubSpot", ("pat-na1-", "pat-na2-", "pat-eu1-", "pat-ap1-"), _UUID),
    ("notion-token", "gitleaks: notion-api-token", ("ntn_",), rf"{_ALNUM}{{40,}}"),
    ("notion-token", "Notion, before 2024", ("secret_",), rf"{_ALNUM}{{43}}(?!{_ANY})"),
    ("posthog-key", "PostHog", ("phx_",), rf"{_ANY}{{40,}}"),
    (
        "sentry-token",
        "gitleaks: sentry-user-token, sentry-org-token",
        ("sntryu_", "sntrys_"),
        r"[A-Za-z0-9_+/=\-]{60,}",
    ),
    ("sonar-token", "gitleaks: sonar-api-token", ("squ_", "sqp_", "sqa_"), rf"{_HEX}{{40}}"),
    ("contentful-token", "Contentful", ("CFPAT-",), rf"{_ANY}{{43,}}"),
    ("typeform-token", "gitleaks: typeform-api-token", ("tfp_",), r"[A-Za-z0-9_.\-]{40,}"),
    # Clouds and databases
    ("fly-token", "gitleaks: flyio-access-token", ("fm2_", "fm1r_", "fm1a_"), r"[A-Za-z0-9+/]{60,}={0,3}"),
    ("heroku-key", "gitleaks: heroku-api-key-v2", ("HRKU-AA",), rf"{_ANY}{{50,}}"),
    ("neon-key", "Neon", ("napi_",), r"[a-z0-9]{60,}"),
    ("planetscale-token", "gitleaks: planetscale-password", ("pscale_pw_", "pscale_tkn_"), r"[A-Za-z0-9_=.\-]{32,}"),
    ("prefect-key", "gitleaks: prefect-api-token", ("pnu_",), rf"{_ALNUM}{{36}}"),
    ("render-key", "Render", ("rnd_",), rf"{_ALNUM}{{28,}}"),
    ("supabase-key", "Supabase", ("sbp_",), rf"{_HEX}{{40}}"),
    ("supabase-key", "Supabase", ("sb_secret_",), rf"{_ANY}{{22,}}"),
    ("tailscale-key", "Tailscale", ("tskey-",), rf"[a-z]{{3,10}}-{_ALNUM}{{10,}}-{_ALNUM}{{20,}}"),
    # Models and services for agents
    ("daytona-key", "Daytona", ("dtn_",), rf"{_HEX}{{64}}"),
    ("e2b-key", "E2B", ("e2b_",), rf"{_HEX}{{40}}"),
    ("elevenlabs-key", "ElevenLabs", ("sk_",), rf"{_HEX}{{48}}(?!{_ANY})"),
    ("firecrawl-key", "Firecrawl", ("fc-",), rf"{_HEX}{{32}}(?!{_ANY})"),
    ("langsmith-key", "LangSmith", ("lsv2_pt_", "lsv2_sk_"), rf"{_HEX}{{32}}_{_HEX}{{6,10}}"),
    ("pinecone-key", "Pinecone", ("pcsk_",), rf"{_ALNUM}{{4,8}}_{_ALNUM}{{50,}}"),
    ("tavily-key", "Tavily", ("tvly-",), rf"{_ANY}{{30,}}"),
    ("together-key", "Together AI", ("tgp_v1_",), rf"{_ANY}{{40,}}"),
    # Payment and mail
    ("brevo-key", "gitleaks: sendinblue-api-token", ("xkeysib-",), rf"{_HEX}{{64}}-{_ALNUM}{{16}}"),
    ("plaid-token", "Plaid", ("access-production-", "access-development-", "access-sandbox-"), _UUID),
    ("resend-key", "Resend", ("re_",), rf"{_ALNUM}{{8}}_{_ALNUM}{{24}}(?!{_ANY})"),
    ("square-token", "Square", ("sq0csp-", "sq0atp-"), rf"{_ANY}{{22,43}}"),
)

import { duration, integer, type Kind, option, secret, type ValuesOf, wholeOf } from './option.js'
import type { Section } from './section.js'

const MIN_SECRET_LENGTH = 16
const MAX_SECRET_LENGTH = 1_024
const BASE64 = /^whsec_[A-Za-z0-9+/]+={0,2}$/

/** A message has no more of it than its host: a path may be a secret. */
const HTTP_URL: Kind<string> = {
  schema: { type: 'string', pattern: '^https?://' },
  read(section, name) {
    const given = section.secret(name)
    if (given === undefined) return undefined
    const url = URL.canParse(given) ? new URL(given) : undefined
    if (url === undefined || !['http:', 'https:'].includes(url.protocol))
      section.fault(name, 'must be a URL with http or https, for example https://alerts.example.com/hooks/limits')
    else if (url.username !== '' || url.password !== '')
      section.fault(name, 'must have no user and password: receivers check the signature')
    else return url.href
    return undefined
  },
  shown: (url) => new URL(url).origin,
}

/** The section `webhook`: where soft limits are announced. */
export const WEBHOOK = {
  url: option('url', HTTP_URL, {
    what: 'Receives each soft limit that a key reaches as a POST of JSON.',
    example: 'https://alerts.example.com/hooks/limits',
    required: '',
  }),
  secret: option(
    'secret',
    secret({ minLength: MIN_SECRET_LENGTH, maxLength: MAX_SECRET_LENGTH }, (value) => {
      if (value.length < MIN_SECRET_LENGTH || value.length > MAX_SECRET_LENGTH)
        return `must have ${MIN_SECRET_LENGTH} to ${MAX_SECRET_LENGTH} characters: for example the output of "openssl rand -hex 32"`
      return value.startsWith('whsec_') && !BASE64.test(value) ? 'must be base64 after whsec_' : undefined
    }),
    {
      what: 'Signs each request as [Standard Webhooks](https://www.standardwebhooks.com) does, 16 to 1,024 characters; base64 after `whsec_`. Default: none, requests are not signed.',
      example: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    },
  ),
  timeoutMs: option('timeout', duration(100, 60_000), {
    what: 'How long an attempt may take, 100 ms to 60 s.',
    standard: 5_000,
    example: '2s',
  }),
  retries: option('retries', integer(0, 20), {
    what: 'Further attempts after one that failed, 0 to 20: after 1 s, then twice as long each time, up to 1 min.',
    standard: 5,
    example: 8,
  }),
}

/** Where soft limits are announced. */
export type WebhookConfig = ValuesOf<typeof WEBHOOK> & { readonly url: string }

/** Undefined without the section, and after a fault. */
export function readWebhook(root: Section): WebhookConfig | undefined {
  if (!root.has('webhook')) return undefined
  const { url, ...more } = wholeOf(root.section('webhook'), WEBHOOK)
  return url === undefined ? undefined : { url, ...more }
}

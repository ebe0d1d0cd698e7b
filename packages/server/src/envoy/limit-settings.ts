/** Settings of the service as a whole, which Envoy's ratelimit service takes from the environment. */
export interface LimitSettings {
  /** `SHADOW_MODE`: every request passes; statuses say what would have been. */
  readonly shadowMode: boolean
  /** `QUOTA_MODE`: all limits are in quota mode. */
  readonly quotaMode: boolean
  /** `RESPONSE_DYNAMIC_METADATA`: responses carry dynamic metadata. */
  readonly dynamicMetadata: boolean
  /** `LIMIT_RESPONSE_HEADERS_ENABLED`, with the names of the headers; undefined without headers. */
  readonly headers: LimitHeaderNames | undefined
}

export interface LimitHeaderNames {
  readonly limit: string
  readonly remaining: string
  readonly reset: string
}

export const DEFAULT_LIMIT_SETTINGS: LimitSettings = { shadowMode: false, quotaMode: false, dynamicMetadata: false, headers: undefined }

/** The settings in the environment. Booleans are `1`, `t` or `true` and `0`, `f` or `false`, in any case, as there; anything else is a fault. */
export function limitSettings(
  env: Readonly<Record<string, string | undefined>>,
  fault: (variable: string, reason: string) => void,
): LimitSettings {
  const flag = (variable: string): boolean => {
    const text = env[variable]
    if (text === undefined || text === '') return false
    if (/^(1|t|true)$/i.test(text)) return true
    if (!/^(0|f|false)$/i.test(text)) fault(variable, `must be true or false, not ${JSON.stringify(text)}`)
    return false
  }
  const headers: LimitHeaderNames = {
    limit: env.LIMIT_LIMIT_HEADER || 'RateLimit-Limit',
    remaining: env.LIMIT_REMAINING_HEADER || 'RateLimit-Remaining',
    reset: env.LIMIT_RESET_HEADER || 'RateLimit-Reset',
  }
  return {
    shadowMode: flag('SHADOW_MODE'),
    quotaMode: flag('QUOTA_MODE'),
    dynamicMetadata: flag('RESPONSE_DYNAMIC_METADATA'),
    headers: flag('LIMIT_RESPONSE_HEADERS_ENABLED') ? headers : undefined,
  }
}

/** Whether `value` matches a pattern; `parts` is what stands between its `*`, each of which matches any text, also an empty one. */
export function matchesParts(parts: readonly string[], value: string): boolean {
  const first = parts[0] as string
  const last = parts[parts.length - 1] as string
  if (parts.length === 1) return value === first
  if (value.length < first.length + last.length || !value.startsWith(first) || !value.endsWith(last)) return false
  // The leftmost place of each part leaves the most for the parts after it.
  const end = value.length - last.length
  let from = first.length
  for (let i = 1; i < parts.length - 1; i++) {
    const part = parts[i] as string
    const at = value.indexOf(part, from)
    if (at < 0 || at + part.length > end) return false
    from = at + part.length
  }
  return true
}

/** `Retry-After`: whole seconds, rounded up, never 0. Source: RFC 9110, section 10.2.3. */
export function retryAfterS(retryAfterMs: number): string {
  return String(Math.max(1, Math.ceil(retryAfterMs / 1000)))
}

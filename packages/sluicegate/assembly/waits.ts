/** Microseconds until what was reserved last may be spent; not of buckets and GCRA, where the debt says it. */
export let waitUs: i64 = 0

export function waitFor(us: i64): void {
  waitUs = us
}

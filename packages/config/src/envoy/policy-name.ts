import { createHash } from 'node:crypto'

const MAX_NAME_LENGTH = 120
const DIGEST_LENGTH = 12

/** A name for a policy, printable ASCII of at most 120 characters, of the path to its limit. `taken` holds the names given so far. */
export function policyName(path: string, taken: Set<string>): string {
  const readable = path.replace(/[^ -~]+/gu, encodeURIComponent).trim()
  const short =
    readable.length <= MAX_NAME_LENGTH ? readable : `${readable.slice(0, MAX_NAME_LENGTH - DIGEST_LENGTH - 1)}~${digestOf(path)}`
  // Different keys and values can read the same: "a_b" and "c", "a" and "b_c".
  let name = short
  for (let n = 2; taken.has(name); n++) name = `${short.slice(0, MAX_NAME_LENGTH - 5)}~${n}`
  taken.add(name)
  return name
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, DIGEST_LENGTH)
}

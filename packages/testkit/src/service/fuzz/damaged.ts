import type { Random } from 'sluicegate-testkit'

/** With a few bytes changed, removed or repeated. */
export function damaged(random: Random, input: Buffer): Buffer {
  const bytes = [...input]
  for (let faults = random.integer(1, 3); faults > 0 && bytes.length > 0; faults--) {
    const at = random.integer(0, bytes.length - 1)
    const fault = random.integer(0, 3)
    if (fault === 0) bytes[at] = random.integer(0, 255)
    else if (fault === 1) bytes.splice(at, random.magnitude(1, 8))
    else if (fault === 2) bytes.splice(at, 0, ...bytes.slice(at, at + random.magnitude(1, 8)))
    else bytes.length = at
  }
  return Buffer.from(bytes)
}

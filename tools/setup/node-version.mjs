import { Refusal } from './root.mjs'

/** Refuses a Node.js older than `least`. */
export function requireNode(least, found = process.versions.node) {
  const [leastMajor, leastMinor] = least.split('.').map(Number)
  const [major, minor] = found.split('.').map(Number)
  if (major > leastMajor || (major === leastMajor && minor >= leastMinor)) return
  throw new Refusal(`Sluicegate needs Node.js ${least} or newer; this is ${found}. See https://nodejs.org/en/download`)
}

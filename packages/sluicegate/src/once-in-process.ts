/**
 * Both forms of the package, ES modules and CommonJS, and every copy of one version, find what exists once under this name. Another version
 * has its own name: what it keeps may look otherwise. A test holds it to the version in package.json.
 */
const KEPT = Symbol.for('sluicegate 0.1.0')

interface Keeper {
  [KEPT]?: Map<string, object>
}

/**
 * A value that exists once per process (strictly: per realm), however often the package is loaded. The first caller makes it. Every module that
 * keeps state, and every class that `instanceof` is asked about across calls, goes through here.
 */
export function onceInProcess<Kept extends object>(name: string, make: () => Kept): Kept {
  const kept = keptHere()
  const known = kept.get(name) as Kept | undefined
  if (known !== undefined) return known
  const made = make()
  kept.set(name, made)
  return made
}

function keptHere(): Map<string, object> {
  const keeper = globalThis as Keeper
  const known = keeper[KEPT]
  if (known !== undefined) return known
  const kept = new Map<string, object>()
  // Where the global object is frozen, each copy keeps to itself.
  Reflect.defineProperty(keeper, KEPT, { value: kept })
  return kept
}

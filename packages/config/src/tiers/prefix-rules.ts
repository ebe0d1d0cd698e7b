/** The ids of limits by prefix. */
export interface PrefixRules {
  /** Prefixes. */
  readonly size: number
  /** That of the longest prefix of a key; undefined where none fits. */
  idOf(key: string): string | undefined
}

export const NO_PREFIXES: PrefixRules = { size: 0, idOf: () => undefined }

/** Prefixes by length, so that a key needs one look for each length that there is. */
export class PrefixTable implements PrefixRules {
  /** The longest first. */
  #byLength: [length: number, idByPrefix: Map<string, string>][] = []
  #size = 0

  get size(): number {
    return this.#size
  }

  /** Different lengths. */
  get lengths(): number {
    return this.#byLength.length
  }

  has(prefix: string): boolean {
    return this.#of(prefix.length)?.has(prefix) ?? false
  }

  hasLength(length: number): boolean {
    return this.#of(length) !== undefined
  }

  add(prefix: string, id: string): void {
    let map = this.#of(prefix.length)
    if (map === undefined) {
      map = new Map()
      this.#byLength.push([prefix.length, map])
      this.#byLength.sort(([a], [b]) => b - a)
    }
    map.set(prefix, id)
    this.#size++
  }

  *entries(): Generator<readonly [prefix: string, id: string]> {
    for (const [, map] of this.#byLength) yield* map
  }

  idOf(key: string): string | undefined {
    for (const [length, map] of this.#byLength) {
      if (length > key.length) continue
      const id = map.get(length === key.length ? key : key.slice(0, length))
      if (id !== undefined) return id
    }
    return undefined
  }

  #of(length: number): Map<string, string> | undefined {
    return this.#byLength.find(([each]) => each === length)?.[1]
  }
}

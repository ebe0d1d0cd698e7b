// How objects are logged. Limiters and their results hold keys and the secret of the key hash; logs must contain neither.

/** What `console.log` and `util.inspect` of Node and Bun ask an object for. */
const INSPECT: unique symbol = Symbol.for('nodejs.util.inspect.custom')
/** The same of Deno. */
const DENO_INSPECT: unique symbol = Symbol.for('Deno.customInspect')

type Inspect = (value: unknown, options?: object) => string

/** Is logged, and made into JSON, as `toJSON` says, whatever else it holds. */
export abstract class Shown {
  abstract toJSON(): object

  [INSPECT](_depth: number, options: object, inspect?: Inspect): string {
    return textOf(this.constructor.name, this.toJSON(), inspect, options)
  }

  [DENO_INSPECT](inspect?: Inspect, options?: object): string {
    return textOf(this.constructor.name, this.toJSON(), inspect, options)
  }
}

/** A limiter, which is logged as its policy, and closed at the end of a `using` block. */
export abstract class ShownLimiter<Policy extends object = object> extends Shown {
  abstract readonly policy: Policy
  abstract close(): void

  [Symbol.dispose](): void {
    this.close()
  }

  /** The policy; undefined once the limiter is closed. */
  toJSON(): { readonly policy: Policy | undefined } {
    try {
      return { policy: this.policy }
    } catch {
      return { policy: undefined }
    }
  }
}

/** The object itself, logged and made into JSON as something else; copies of it, as by `structuredClone`, are logged whole. */
export function shownAs<Given extends object>(given: Given, name: string, shown: object): Given {
  const show = (_depth: number, options: object, inspect?: Inspect): string => textOf(name, shown, inspect, options)
  const showInDeno = (inspect?: Inspect, options?: object): string => textOf(name, shown, inspect, options)
  return Object.defineProperties(given, {
    [INSPECT]: { value: show },
    [DENO_INSPECT]: { value: showInDeno },
    toJSON: { value: () => shown },
  })
}

function textOf(name: string, shown: object, inspect: Inspect = (value) => JSON.stringify(value), options?: object): string {
  return `${name} ${inspect(shown, options)}`
}

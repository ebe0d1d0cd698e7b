import { UsageError } from '../terminal/usage-error.js'

/** A variable of a line in a {@link LineTemplate}. */
export interface TemplateVariable {
  readonly name: string
  /** Which element of a list, from the right; 1 is the last. Undefined: the whole value. */
  readonly hop: number | undefined
}

/** `$remote_addr`, `$httpRequest.clientIp`, `${request.headers.X-Forwarded-For}`, `$http_x_forwarded_for[-2]`. */
const VARIABLE = /\$(?:\{([^{}[\]]+)(?:\[-(\d{1,2})\])?\}|(@?\w+(?:\.@?\w+)*))(?:\[-(\d{1,2})\])?/g
const MOST_HOPS = 32

/** A text made from variables of a line. */
export class LineTemplate {
  readonly text: string
  readonly variables: readonly TemplateVariable[]
  /** The text before the first variable, and after each. */
  readonly literals: readonly string[]

  /** @throws {UsageError} for a text without a variable. */
  constructor(option: string, text: string, example: string) {
    const variables: TemplateVariable[] = []
    const literals: string[] = []
    let last = 0
    for (const match of text.matchAll(VARIABLE)) {
      const hop = match[2] ?? match[4]
      if (hop !== undefined && !(Number(hop) >= 1 && Number(hop) <= MOST_HOPS))
        throw new UsageError(`${option}: [-${hop}] must be the number of an element from the right, -1 to -${MOST_HOPS}`)
      literals.push(text.slice(last, match.index))
      variables.push({ name: (match[1] ?? match[3]) as string, hop: hop === undefined ? undefined : Number(hop) })
      last = match.index + match[0].length
    }
    if (variables.length === 0) throw new UsageError(`${option}: "${text}" names no variable, such as ${example}`)
    literals.push(text.slice(last))
    this.text = text
    this.variables = variables
    this.literals = literals
  }

  get names(): readonly string[] {
    return this.variables.map(({ name }) => name)
  }
}

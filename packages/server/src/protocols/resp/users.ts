import { createHash, timingSafeEqual } from 'node:crypto'

/** A client that may send commands. */
export interface User {
  readonly name: string
  /** In small letters; undefined: all. */
  readonly commands: ReadonlySet<string> | undefined
}

/** A user of the configuration. */
export interface UserConfig extends User {
  readonly token: string
}

/** The name that `AUTH token` without a name means, as in Redis. */
export const DEFAULT_USER = 'default'
const ANYONE: User = { name: DEFAULT_USER, commands: undefined }

/** Who may use the protocol. Tokens are kept as digests and compared in constant time. */
export class Users {
  readonly #users = new Map<string, { readonly user: User; readonly digest: Buffer }>()

  constructor(users: readonly UserConfig[]) {
    for (const { name, commands, token } of users) this.#users.set(name, { user: { name, commands }, digest: digestOf(token) })
  }

  /** The user of a client that has sent no token; undefined if it must. */
  get unauthenticated(): User | undefined {
    return this.#users.size === 0 ? ANYONE : undefined
  }

  /** The user of that name, if the token is right. */
  authenticate(name: string, token: Uint8Array): User | undefined {
    const entry = this.#users.get(name)
    const isRight = timingSafeEqual(digestOf(token), entry?.digest ?? NO_DIGEST)
    return isRight ? entry?.user : undefined
  }
}

const NO_DIGEST = Buffer.alloc(32)

function digestOf(token: string | Uint8Array): Buffer {
  return createHash('sha256').update(token).digest()
}

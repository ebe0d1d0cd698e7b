import { type AddressInfo, createServer, type Server } from 'node:net'

/** A message of PostgreSQL's protocol, version 3. */
function message(type: string, text: string): Buffer {
  const head = Buffer.from(`${type}\0\0\0\0`, 'latin1')
  head.writeInt32BE(text.length + 4, 1)
  return Buffer.concat([head, Buffer.from(text, 'latin1')])
}

const GREETING = Buffer.concat([message('R', '\0\0\0\0'), message('Z', 'I')])
const GOODBYE = message('E', 'SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0')

/** Greets clients as PostgreSQL does, and answers nothing else; or says in the same packet that it shuts down, and closes. */
export class GreetingPostgres {
  /** Whether a connection is closed as it is greeted. */
  shutsDown: boolean
  /** Clients that were greeted. */
  greeted = 0
  private readonly server: Server

  private constructor(shutsDown: boolean) {
    this.shutsDown = shutsDown
    this.server = createServer((socket) => {
      socket
        .on('error', () => undefined)
        .once('data', () => {
          this.greeted++
          if (this.shutsDown) socket.end(Buffer.concat([GREETING, GOODBYE]))
          else socket.write(GREETING)
        })
    })
  }

  static async start({ shutsDown }: { readonly shutsDown: boolean }): Promise<GreetingPostgres> {
    const made = new GreetingPostgres(shutsDown)
    await new Promise<void>((resolve) => made.server.listen(0, '127.0.0.1', resolve))
    return made
  }

  get url(): string {
    return `postgres://nobody@127.0.0.1:${(this.server.address() as AddressInfo).port}/none`
  }

  [Symbol.dispose](): void {
    this.server.close()
  }
}

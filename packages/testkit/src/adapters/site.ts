/** What a route answers: a status with a text, or a text that comes in pieces. */
export interface SiteReply {
  readonly status: number
  readonly text: string
  readonly pieces?: AsyncIterable<string>
}

/** The app behind a limit, whatever framework it is served by: its routes are `/ok`, `/status/:status`, `/slow`, `/stream`, `/throws`, `/strict`. */
export class Site {
  /** Requests that got past the limit. */
  handled = 0
  /** The errors that reached the framework's own error handling. */
  readonly errors: unknown[] = []
  private opened: (() => void) | undefined
  private gate: Promise<void> = Promise.resolve()

  /** From now on `/slow` and the second piece of `/stream` wait until the gate is opened. */
  shut(): void {
    this.gate = new Promise((resolve) => {
      this.opened = resolve
    })
  }

  open(): void {
    this.opened?.()
  }

  async reply(route: string, status = 200): Promise<SiteReply> {
    this.handled++
    if (route === 'throws') throw new Error('thrown by a handler')
    if (route === 'slow') await this.gate
    return route === 'stream' ? { status, text: '', pieces: this.pieces() } : { status, text: route }
  }

  /** What error handlers answer with 500. */
  caught(error: unknown): string {
    this.errors.push(error)
    return `caught: ${error instanceof Error ? error.message : String(error)}`
  }

  private async *pieces(): AsyncGenerator<string> {
    yield 'first '
    await this.gate
    yield 'second '
    yield 'third'
  }
}

/** The routes of a site, and the one whose status is in its path. */
export const ROUTES = ['ok', 'slow', 'stream', 'throws', 'strict'] as const

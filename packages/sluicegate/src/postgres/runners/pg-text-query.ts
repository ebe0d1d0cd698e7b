import type { SqlRow } from '../sql-runner.js'
import type { Statement } from '../statements.js'

/** The part of a connection of `pg` that its queries use, as those of pg-cursor do. */
export interface PgConnection {
  readonly stream: { cork?(): void; uncork?(): void }
  /** The server has them, by name. */
  readonly parsedStatements: Record<string, string | undefined>
  /** They are on their way. Absent in earlier versions of `pg`. */
  readonly submittedNamedStatements?: Record<string, string | undefined>
  parse(statement: { readonly name: string; readonly text: string }): void
  bind(values: { readonly portal: ''; readonly statement: string; readonly values: readonly string[]; readonly binary: false }): void
  execute(portal: { readonly portal: ''; readonly rows: 0 }): void
  sync(): void
}

type Ended = (error: unknown, result?: { readonly rows: readonly SqlRow[] }) => void

/** A statement whose columns are known: the server does not describe them, and nothing looks for parsers of their types. */
export class PgTextQuery {
  readonly name: string
  readonly text: string
  readonly values: readonly string[]
  callback: Ended
  private readonly columns: readonly string[]
  private readonly rows: SqlRow[] = []

  constructor({ name, text, columns = [] }: Statement, values: readonly string[], callback: Ended) {
    this.name = name
    this.text = text
    this.columns = columns
    this.values = values
    this.callback = callback
  }

  submit(connection: PgConnection): null {
    const { name, text, values } = this
    const { stream, parsedStatements, submittedNamedStatements } = connection
    stream.cork?.()
    if (parsedStatements[name] === undefined && submittedNamedStatements?.[name] === undefined) {
      connection.parse({ name, text })
      if (submittedNamedStatements !== undefined) submittedNamedStatements[name] = text
    }
    connection.bind({ portal: '', statement: name, values, binary: false })
    connection.execute({ portal: '', rows: 0 })
    connection.sync()
    stream.uncork?.()
    return null
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    const row: Record<string, unknown> = {}
    for (let i = 0; i < fields.length; i++) row[this.columns[i] as string] = fields[i]
    this.rows.push(row)
  }

  handleReadyForQuery(): void {
    this.callback(null, { rows: this.rows })
  }

  handleError(error: unknown): void {
    this.callback(error)
  }

  // What `pg` calls too, and says nothing that is not known.
  handleRowDescription(): void {}
  handleCommandComplete(): void {}
  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}
  handleCopyInResponse(): void {}
  handleCopyData(): void {}
}

/** Whether a client takes such queries: those written in JavaScript do, except in pipelines. */
export function takesTextQueries(client: object): boolean {
  const { connection, pipeline } = client as { readonly connection?: Partial<PgConnection>; readonly pipeline?: unknown }
  return pipeline !== true && typeof connection?.bind === 'function' && typeof connection.parsedStatements === 'object'
}

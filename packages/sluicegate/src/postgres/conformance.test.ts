import { after } from 'node:test'
import pg from 'pg'
import { PostgresProcess } from 'sluicegate-testkit'
import { equalLevels } from 'sluicegate-testkit/stores/equal-levels.js'
import { conformanceOverStore } from 'sluicegate-testkit/stores/store-conformance.js'
import { overPostgres } from 'sluicegate-testkit/stores/store-limiters.js'
import { postgres } from './postgres.js'
import { postgresTable } from './table-name.js'

const server = await PostgresProcess.start()
const pool = new pg.Pool({ connectionString: server.url, max: 4 })
after(async () => {
  await pool.end()
  await server.stop()
})

conformanceOverStore('PostgreSQL', overPostgres(pool), {
  share: 0.002,
  inShortRun: ['all-of'],
  whole: ['token bucket'],
  own: ['all-of'],
  furthestBackMs: 300,
})

equalLevels(
  'PostgreSQL',
  async () => {
    await pool.query(postgresTable({ table: 'equal' }))
    return postgres(pool, { table: 'equal' })
  },
  { options: { mode: 'exact' } },
)

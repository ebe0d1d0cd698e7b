import { after } from 'node:test'
import pg from 'pg'
import { PostgresProcess } from 'sluicegate-testkit'
import { conformanceOverStore, overPostgres } from 'sluicegate-testkit/stores/store-conformance.js'

const server = await PostgresProcess.start()
const pool = new pg.Pool({ connectionString: server.url, max: 4 })
after(async () => {
  await pool.end()
  await server.stop()
})

conformanceOverStore('PostgreSQL', overPostgres(pool), { share: 0.002, keysShare: 0.002, sampled: true, furthestBackMs: 300 })

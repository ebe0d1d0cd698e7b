import { after } from 'node:test'
import { PostgresProcess } from 'sluicegate-testkit'
import { conformanceOverStore } from 'sluicegate-testkit/stores/store-conformance.js'
import { LimiterHost } from 'sluicegate-testkit/twins/synchronous-limiter.js'

const server = await PostgresProcess.start()
const host = new LimiterHost(server.url)
after(async () => {
  await host.stop()
  await server.stop()
})

conformanceOverStore('PostgreSQL', host, { share: 0.002, keysShare: 0.002, sampled: true, furthestBackMs: 300 })

import { after } from 'node:test'
import { PostgresProcess, shortOrLong } from 'sluicegate-testkit'
import { conformanceOverStore } from 'sluicegate-testkit/stores/store-conformance.js'
import { LimiterHost } from 'sluicegate-testkit/twins/synchronous-limiter.js'

const server = await PostgresProcess.start()
const host = new LimiterHost(server.url)
after(async () => {
  await host.stop()
  await server.stop()
})

conformanceOverStore('PostgreSQL', host, { share: shortOrLong(0.002, 0.004), keysShare: shortOrLong(0.005, 0.002), sampled: true })

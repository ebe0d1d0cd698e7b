// Koa: searches cost more than pages. A cost above the burst can never pass.
import Koa from 'koa'
import { tokenBucket } from 'sluicegate'
import { rateLimit } from 'sluicegate/koa'

const app = new Koa()
app.use(
  rateLimit({
    policy: tokenBucket({ limit: 10, window: '1h' }),
    // A cost chosen by clients must not be 0: it would pass uncounted.
    cost: (context) => Math.max(1, Number.parseInt(context.query.rows, 10) || 1),
  }),
)
app.use((context) => {
  context.body = 'rows'
})

const server = app.listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
const url = `http://127.0.0.1:${server.address().port}/`

for (const rows of [6, 6, 3, 0, 11]) {
  const { status, headers } = await fetch(`${url}?rows=${rows}`)
  const seconds = headers.get('retry-after')
  console.log(`${rows} rows: ${status}${seconds ? `, again in ${Math.ceil(seconds / 60)} minutes` : ''}`)
}
server.close()
server.closeAllConnections()

// Prints:
//   6 rows: 200
//   6 rows: 429, again in 12 minutes
//   3 rows: 200
//   0 rows: 200
//   11 rows: 422

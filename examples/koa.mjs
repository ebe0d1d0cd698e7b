// Koa: searches cost more than pages, and what costs more than there ever is can never pass.
import Koa from 'koa'
import { tokenBucket } from 'sluicegate'
import { rateLimit } from 'sluicegate/koa'

const app = new Koa()
app.use(
  rateLimit({
    policy: tokenBucket({ limit: 10, window: '1h' }),
    cost: (context) => Number(context.query.rows ?? 1),
  }),
)
app.use((context) => {
  context.body = 'rows'
})

const server = app.listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
const url = `http://127.0.0.1:${server.address().port}/`

for (const rows of [6, 6, 4, 11]) {
  const { status, headers } = await fetch(`${url}?rows=${rows}`)
  const seconds = headers.get('retry-after')
  console.log(`${rows} rows: ${status}${seconds ? `, again in ${Math.ceil(seconds / 60)} minutes` : ''}`)
}
server.close()
server.closeAllConnections()

// Prints:
//   6 rows: 200
//   6 rows: 429, again in 12 minutes
//   4 rows: 200
//   11 rows: 422

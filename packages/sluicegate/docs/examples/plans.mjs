// The plan of a user as the policy of each request. `sluicegate/express` and the others take the same options.
import { fixedWindow } from 'sluicegate'
import { rateLimit } from 'sluicegate/fetch'

const plans = {
  free: fixedWindow({ limit: 2, window: '1h', name: 'free' }),
  pro: fixedWindow({ limit: 100, window: '1h', name: 'pro' }),
}
const users = new Map([
  ['ada', 'free'],
  ['bob', 'pro'],
])
const planOf = async (user) => users.get(user) // usually a database

const limit = rateLimit({
  policy: async (request) => plans[await planOf(request.headers.get('x-user'))],
  key: (request) => request.headers.get('x-user'),
})
const handler = limit.wrap(() => new Response('hello'))

async function ask(user) {
  const { status, headers } = await handler(new Request('http://localhost/', { headers: { 'x-user': user } }))
  console.log(user, status, headers.get('ratelimit-policy'), headers.get('ratelimit').split(';')[1])
}

for (const user of ['ada', 'ada', 'ada', 'bob']) await ask(user)
users.set('ada', 'pro') // takes effect with the next request
await ask('ada')

// Prints:
//   ada 200 "free";q=2;w=3600 r=1
//   ada 200 "free";q=2;w=3600 r=0
//   ada 429 "free";q=2;w=3600 r=0
//   bob 200 "pro";q=100;w=3600 r=99
//   ada 200 "pro";q=100;w=3600 r=99

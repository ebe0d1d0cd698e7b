// The app between nginx and the model: holds tokens for an answer, calls the model, and closes the hold with what the model has used.
//
//   node examples/model-tokens/app.mjs                               tokens over HTTP
//   SLUICEGATE_GRPC=127.0.0.1:8081 node examples/model-tokens/app.mjs   tokens over gRPC
import { createServer } from 'node:http'

const MODEL = process.env.MODEL_URL ?? 'http://127.0.0.1:3001'
const PORT = Number(process.env.PORT ?? 3000)
/** The longest time of an answer of the model. */
const MODEL_MS = Number(process.env.MODEL_MS ?? 60_000)
/** A hold outlives the answer that it is for. */
const TTL_MS = Number(process.env.TTL_MS ?? MODEL_MS + 5_000)
const MAX_BODY = 100_000

const { open, close } = await import(process.env.SLUICEGATE_GRPC ? './over-grpc.mjs' : './over-http.mjs')

const server = createServer((request, response) => {
  complete(request, response).catch((error) => {
    console.error(error.message)
    if (!response.headersSent) reply(response, 503, { error: 'no answer' })
  })
})

async function complete(request, response) {
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  const { prompt, max_tokens } = await bodyOf(request)
  if (typeof prompt !== 'string' || !(max_tokens >= 1)) return reply(response, 400, { error: 'prompt and max_tokens' })
  const user = request.headers['x-user']
  // About four characters make a token; the answer has at most max_tokens.
  const asked = Math.ceil(prompt.length / 4)
  const { id, retryAfter } = await open(user, asked + Math.ceil(max_tokens), TTL_MS)
  if (id === undefined) {
    // The model was not called.
    if (retryAfter !== null) response.setHeader('Retry-After', retryAfter)
    return reply(response, 429, { error: 'no tokens left for this request' })
  }
  // Before the answer goes out its tokens are counted: whoever asks again sees it.
  let outcome
  try {
    outcome = await answerOf(prompt, max_tokens, gone.signal)
  } finally {
    // A client that gives up ends the call. What the model has said by then is not known: the prompt counts.
    const used = outcome?.used ?? asked
    if (!(await close(id, used))) console.error(`a hold has ended before its close: ${used} tokens are not counted`)
  }
  reply(response, outcome.status, outcome.body)
}

/** What the model answers, and how many tokens it has used. */
async function answerOf(prompt, max_tokens, signal) {
  const answer = await fetch(`${MODEL}/complete`, {
    method: 'POST',
    body: JSON.stringify({ prompt, max_tokens }),
    signal: AbortSignal.any([signal, AbortSignal.timeout(MODEL_MS)]),
  })
  if (answer.ok) {
    const { text, usage } = await answer.json()
    return { used: usage.total_tokens, status: 200, body: { text, usage } }
  }
  // The model has refused the request, and used nothing.
  await answer.body?.cancel()
  return { used: 0, status: 502, body: { error: `the model answers ${answer.status}` } }
}

async function bodyOf(request) {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) {
    text += chunk
    if (text.length > MAX_BODY) return {}
  }
  try {
    return JSON.parse(text) ?? {}
  } catch {
    return {}
  }
}

function reply(response, status, body) {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
}

server.listen(PORT, '127.0.0.1', () => console.log(`app listens on http://127.0.0.1:${server.address().port}`))

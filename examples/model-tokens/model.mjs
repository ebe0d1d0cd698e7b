// A slow stand-in for a language model: one word of the answer takes 100 ms and 10 tokens, whatever max_tokens says.
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

const server = createServer(async (request, response) => {
  let body = ''
  for await (const chunk of request) body += chunk
  const { prompt } = JSON.parse(body)
  const words = prompt.split(/\s+/)
  for (let i = 0; i < words.length && !response.destroyed; i++) await sleep(100)
  const total_tokens = Math.ceil(prompt.length / 4) + 10 * words.length
  response.end(JSON.stringify({ text: prompt.toUpperCase(), usage: { total_tokens } }))
})
server.listen(Number(process.env.PORT ?? 3001), '127.0.0.1', () =>
  console.log(`model listens on http://127.0.0.1:${server.address().port}`),
)

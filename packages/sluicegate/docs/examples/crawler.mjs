// Crawls a small site that allows ten pages per second: all of it, each page once, without a refusal.
import { createServer } from 'node:http'
import { createLimiter, tokenBucket } from 'sluicegate'
import { rateLimitHeaders } from 'sluicegate/http'
import { limitedFetch } from 'sluicegate/outbound'

// The site: a tree of pages, each with links to two more; and a limit, which it declares in its headers.
const allowed = createLimiter(tokenBucket({ limit: 10, window: '1s' }))
const refused = []
const site = createServer((request, response) => {
  if (request.url === '/robots.txt') return response.end('User-agent: *\nCrawl-delay: 0.05\nDisallow: /private\n')
  const decision = allowed.take('crawler')
  for (const [name, value] of rateLimitHeaders(allowed.policy, decision)) response.setHeader(name, value)
  if (!decision.allowed) {
    refused.push(request.url)
    response.statusCode = 429
    return response.end()
  }
  const page = Number(request.url.slice(1)) || 1
  const links = [2 * page, 2 * page + 1].filter((next) => next <= 31).map((next) => `<a href="/${next}">`)
  response.end(`${links.join('')}<a href="/private/${page}">`)
})
await new Promise((resolve) => site.listen(0, '127.0.0.1', resolve))
const home = `http://127.0.0.1:${site.address().port}`

// robots.txt first.
const robots = await (await fetch(`${home}/robots.txt`)).text()
const delayMs = Math.ceil(1000 * Number(/^Crawl-delay: *([\d.]+)/m.exec(robots)?.[1] ?? 0))
const closed = [...robots.matchAll(/^Disallow: *(\S+)/gm)].map(([, path]) => path)

const polite = limitedFetch(fetch, {
  ...(delayMs > 0 && { policy: tokenBucket({ limit: 1, window: delayMs }) }), // one per delay, for each host
  concurrency: 4, // at once, for each host
  priority: ({ url }) => -url.pathname.length, // pages near the root first
})

const seen = new Set(['/1'])
async function crawl(path) {
  const response = await polite(home + path)
  const links = [...(await response.text()).matchAll(/href="([^"]+)"/g)].map(([, link]) => link)
  const fresh = links.filter((link) => !seen.has(link) && !closed.some((prefix) => link.startsWith(prefix)))
  for (const link of fresh) seen.add(link)
  await Promise.all(fresh.map(crawl))
}

const startedMs = performance.now()
await crawl('/1')
const tookMs = performance.now() - startedMs
site.close()
site.closeAllConnections()

console.log(`${seen.size} pages`)
console.log(tookMs > 30 * delayMs - 10 ? 'at the pace of robots.txt or slower' : 'too fast')
console.log(`${polite.stats().sent} requests, ${refused.length} of them refused`)

// Prints:
//   31 pages
//   at the pace of robots.txt or slower
//   31 requests, 0 of them refused

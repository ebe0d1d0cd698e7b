// Nest: a limit for all handlers, and decorators. In TypeScript they are written above class and methods; here they are called.
import { Controller, Get, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { tokenBucket } from 'sluicegate'
import { RateLimit, RateLimitModule, SkipRateLimit } from 'sluicegate/nest'

class Pages {
  home() {
    return 'hello'
  }

  search() {
    return 'found'
  }

  health() {
    return 'well'
  }
}

class App {}

decorate(Pages, 'home', Get('/'))
decorate(Pages, 'search', Get('/search'), RateLimit(tokenBucket({ limit: 1, window: '1m', name: 'search' })))
decorate(Pages, 'health', Get('/health'), SkipRateLimit())
Controller()(Pages)
Module({ imports: [RateLimitModule.forRoot(tokenBucket({ limit: 2, window: '1m', name: 'all' }))], controllers: [Pages] })(App)

const app = await NestFactory.create(App, { logger: false, forceCloseConnections: true })
await app.listen(0, '127.0.0.1')
for (const path of ['/search', '/search', '/health', '/', '/', '/']) {
  const { status, headers } = await fetch(`http://127.0.0.1:${app.getHttpServer().address().port}${path}`)
  console.log(`${path} ${status} ${headers.get('ratelimit-policy')}`)
}
await app.close()

function decorate({ prototype }, method, ...decorators) {
  const descriptor = Object.getOwnPropertyDescriptor(prototype, method)
  for (const decorator of decorators) decorator(prototype, method, descriptor)
}

// Prints:
//   /search 200 "search";q=1;w=60
//   /search 429 "search";q=1;w=60
//   /health 200 null
//   / 200 "all";q=2;w=60
//   / 200 "all";q=2;w=60
//   / 429 "all";q=2;w=60

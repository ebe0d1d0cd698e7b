import { Readable } from 'node:stream'
import {
  type ArgumentsHost,
  Catch,
  Controller,
  Get,
  HttpException,
  type INestApplication,
  Module,
  Param,
  Post,
  Res,
  StreamableFile,
  type Type,
} from '@nestjs/common'
import { type AbstractHttpAdapter, BaseExceptionFilter, NestFactory } from '@nestjs/core'
import {
  type NestRequest,
  RateLimit,
  RateLimitException,
  RateLimitFilter,
  RateLimitModule,
} from '../../../sluicegate/dist/adapters/nest.js'
import { closed, type Harness, type Limits, ROUTES, type RunningApp, type Site } from './harness.js'

interface AnyResponse {
  status(code: number): { send(body: string): unknown }
}

/** A controller with the routes of a site. */
function controllerOf(site: Site, { strict }: Limits<NestRequest>): Type {
  async function send(name: string, status: number | undefined, response: AnyResponse): Promise<string | StreamableFile> {
    const { pieces, text, status: code } = await site.reply(name, status)
    response.status(code)
    return pieces === undefined ? text : new StreamableFile(Readable.from(pieces, { objectMode: false }))
  }

  @Controller()
  class SiteController {
    @Get('status/:status')
    status(status: string, response: AnyResponse) {
      return send('status', Number(status), response)
    }

    @Post('ok')
    posted() {
      return site.reply('posted')
    }
  }
  const { prototype } = SiteController as { readonly prototype: object }
  Param('status')(prototype, 'status', 0)
  Res({ passthrough: true })(prototype, 'status', 1)
  for (const name of ROUTES) {
    const value = (response: AnyResponse) => send(name, undefined, response)
    Object.defineProperty(prototype, name, { value })
    const descriptor = { value }
    Get(name)(prototype, name, descriptor)
    Res({ passthrough: true })(prototype, name, 0)
    if (name === 'strict' && strict !== undefined) RateLimit(strict)(prototype, name, descriptor)
  }
  return SiteController
}

/** Serves an app that has this module. */
export async function nestApp(module: Type, adapter: AbstractHttpAdapter, prepare?: (app: INestApplication) => void): Promise<RunningApp> {
  const app = await NestFactory.create(module, adapter, { logger: false, forceCloseConnections: true })
  prepare?.(app)
  await app.listen(0, '127.0.0.1')
  const server = app.getHttpServer()
  return {
    port: server.address().port,
    async close() {
      await closed(server)
      await app.close()
    },
  }
}

/** Nest on one of its platforms. */
export function nestHarness(name: string, adapter: () => AbstractHttpAdapter): Harness<NestRequest> {
  return {
    name,
    limitsUnknown: false,
    limitsOptions: false,
    seesNode: true,
    header: ({ headers }, header) => headers[header] as string | undefined,
    start(site, limits) {
      @Catch()
      class Caught extends BaseExceptionFilter {
        override catch(error: unknown, host: ArgumentsHost): void {
          if (error instanceof RateLimitException) new RateLimitFilter().catch(error, host)
          else if (error instanceof HttpException) super.catch(error, host)
          else host.switchToHttp().getResponse<AnyResponse>().status(500).send(site.caught(error))
        }
      }
      @Module({ imports: [RateLimitModule.forRoot(limits.all)], controllers: [controllerOf(site, limits)] })
      class SiteModule {}
      return nestApp(SiteModule, adapter(), (app) => {
        app.useGlobalFilters(new Caught(app.getHttpAdapter()))
        const { before } = limits
        if (before !== undefined) app.use((_request: unknown, _response: unknown, next: () => void) => void before().then(next))
      })
    },
  }
}

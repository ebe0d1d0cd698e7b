import type { CallTracing } from '../call-tracing.js'
import type { ServedService } from './grpc-service.js'
import type { Method } from './method.js'

/** A service whose calls are followed; streams are not, which have no end. */
export function tracedService(served: ServedService, tracing: CallTracing | undefined): ServedService {
  if (tracing === undefined) return served
  return { ...served, methods: new Map(Array.from(served.methods, ([path, method]) => [path, tracedMethod(path, method, tracing)])) }
}

function tracedMethod(path: string, method: Method, tracing: CallTracing): Method {
  if (method.kind !== 'unary') return method
  const [, service = '', name = ''] = path.split('/')
  const attributes = { 'rpc.system': 'grpc', 'rpc.service': service, 'rpc.method': name }
  return {
    kind: 'unary',
    answer: (request, call) =>
      tracing.run({ name: `${service}/${name}`, attributes, headers: call.headers }, () => method.answer(request, call)),
  }
}

import { Server, ServerCredentials } from '@grpc/grpc-js'

// The bare server that the service is compared with: gRPC's own library, which returns the bytes of the request. Prints its port.

const bytes = (message: Buffer): Buffer => message
const server = new Server()
server.addService(
  {
    ShouldRateLimit: {
      path: '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
      requestStream: false,
      responseStream: false,
      requestSerialize: bytes,
      requestDeserialize: bytes,
      responseSerialize: bytes,
      responseDeserialize: bytes,
    },
  },
  { ShouldRateLimit: (call: { request: Buffer }, answer: (error: null, message: Buffer) => void) => answer(null, call.request) },
)
server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => {
  if (error !== null) throw error
  console.log(port)
})

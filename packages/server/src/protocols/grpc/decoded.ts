import { type DescMessage, fromBinary, type MessageShape } from '@bufbuild/protobuf'
import { GrpcError, STATUS } from './status.js'

/**
 * The message in the bytes of a request.
 *
 * @throws {GrpcError} INVALID_ARGUMENT for bytes that are no such message. The codec's own error would be a fault of the service.
 */
export function decoded<Schema extends DescMessage>(schema: Schema, bytes: Uint8Array): MessageShape<Schema> {
  try {
    return fromBinary(schema, bytes)
  } catch (error) {
    throw new GrpcError(STATUS.invalidArgument, `the request is no ${schema.typeName}: ${(error as Error).message}`)
  }
}

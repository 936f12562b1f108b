/**
 * grpc.reflection v1 and v1alpha from the very descriptors that the server serves, so that grpcurl and `buf curl` need
 * nothing but the address.
 */
import { type DescFile, type DescService, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { ReflectionService } from '@grpc/reflection';
import type { Server } from '@grpc/grpc-js';
import { file_google_rpc_error_details } from '../gen/google/rpc/error_details_pb.js';
import { Health } from '../gen/health/v1/health_pb.js';

export function addReflection(server: Server, services: readonly DescService[]): void {
  const files = new Map<string, DescFile>();
  for (const service of [...services, Health]) collect(service.file, files);
  // Nothing of ours imports it, but tools look up in it what the details of an error are.
  collect(file_google_rpc_error_details, files);
  const fileDescriptorProtos = [...files.values()].map((file) =>
    Buffer.from(toBinary(FileDescriptorProtoSchema, file.proto)),
  );
  // It reads nothing of a package definition but the descriptors in it.
  new ReflectionService({
    reeve: { format: 'Protocol Buffer 3 DescriptorProto', type: {}, fileDescriptorProtos },
  }).addToServer(server);
}

/** A file after everything that it imports. */
function collect(file: DescFile, files: Map<string, DescFile>): void {
  if (files.has(file.name)) return;
  for (const imported of file.dependencies) collect(imported, files);
  files.set(file.name, file);
}

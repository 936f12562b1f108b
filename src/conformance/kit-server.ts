/**
 * The server that a worker under test connects to: the Work call on a port that stays the same, connections that can
 * be cut or turned away. It decides nothing; streams are handed on.
 */
import { type AddressInfo, createServer, type Server as NetServer, type Socket } from 'node:net';
import { type MethodDefinition, Server, ServerCredentials } from '@grpc/grpc-js';
import { WorkerService } from '../gen/reeve/v1/worker_service_pb.js';
import type { WorkCall } from './worker-stream.js';

/** What the real server receives at most, in bytes; larger frames are this kit's to name. */
const MAX_RECEIVE_BYTES = 16 * 1_048_576;

const { work } = WorkerService.method;
const definition: Record<string, MethodDefinition<Buffer, Buffer>> = {
  work: {
    path: `/${WorkerService.typeName}/${work.name}`,
    requestStream: true,
    responseStream: true,
    requestSerialize: asIs,
    requestDeserialize: asIs,
    responseSerialize: asIs,
    responseDeserialize: asIs,
  },
};

export class KitServer {
  /** Connections that were turned away. */
  turnedAway = 0;
  private readonly sockets = new Set<Socket>();
  private readonly grpc = new Server({ 'grpc.max_receive_message_length': MAX_RECEIVE_BYTES });
  private readonly net: NetServer;
  private isOpen = true;

  private constructor(onStream: (call: WorkCall) => void) {
    this.grpc.addService(definition, { work: onStream });
    const injector = this.grpc.createConnectionInjector(ServerCredentials.createInsecure());
    this.net = createServer((socket) => {
      socket.on('error', () => undefined);
      if (!this.isOpen) {
        this.turnedAway += 1;
        socket.destroy();
        return;
      }
      this.sockets.add(socket);
      socket.on('close', () => this.sockets.delete(socket));
      injector.injectConnection(socket);
    });
  }

  static async start(onStream: (call: WorkCall) => void): Promise<KitServer> {
    const server = new KitServer(onStream);
    await new Promise<void>((resolve) => server.net.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get address(): string {
    return `127.0.0.1:${(this.net.address() as AddressInfo).port}`;
  }

  /** Breaks every connection without a word. */
  cut(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  /** Cuts, and breaks every new connection until `letIn`. */
  turnAway(): void {
    this.isOpen = false;
    this.cut();
  }

  letIn(): void {
    this.isOpen = true;
  }

  async stop(): Promise<void> {
    this.turnAway();
    this.grpc.forceShutdown();
    await new Promise((resolve) => this.net.close(resolve));
  }
}

function asIs(bytes: Buffer): Buffer {
  return bytes;
}

/**
 * grpc.health.v1: whether this server takes work. Owns the names it answers for, "" among them for the server as a
 * whole; says NOT_SERVING from the moment a stop begins, before anything is refused.
 */
import type { Server } from '@grpc/grpc-js';
import { HealthImplementation } from 'grpc-health-check';

export class Health {
  private readonly health = new HealthImplementation();

  constructor(private readonly services: readonly string[]) {
    this.set('NOT_SERVING');
  }

  addTo(server: Server): void {
    this.health.addToServer(server);
  }

  serving(): void {
    this.set('SERVING');
  }

  notServing(): void {
    this.set('NOT_SERVING');
  }

  private set(status: 'SERVING' | 'NOT_SERVING'): void {
    for (const service of ['', ...this.services]) this.health.setStatus(service, status);
  }
}

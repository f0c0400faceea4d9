/** `GET /metrics`: metrics of the peer and its process, in the format of Prometheus. */
import type { FastifyInstance } from 'fastify'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import * as z from 'zod'
import { type Figures, type Peer, type PeerStatus, statusSchema, windowName } from '../../peer/index.js'
import type { RouteOptions } from '../options.js'
import { failures } from '../schemas.js'

/** Where the status has the values of the metrics, by names without `admb_`. Their help is the description there. */
const COUNTERS = {
  inputs_total: 'inputs',
  adopted_predictors_total: 'adopted',
  discarded_gradients_total: 'gradients.late',
  skipped_inputs_total: 'skipped',
  drift_alarms_total: 'drift.alarms',
  network_drift_alarms_total: 'networkDrifts',
  received_messages_total: 'received.messages',
  received_bytes_total: 'received.bytes',
  sent_messages_total: 'sent.messages',
  sent_bytes_total: 'sent.bytes',
  float32_sum_bytes_total: 'sent.kinds.float32'
}

/** Sums over the inputs, whose means are in the status. */
const SUMS: Readonly<Record<string, readonly [help: string, read: (status: PeerStatus) => number]>> = {
  loss_nats_total: [
    'Progressive loss, summed over inputs (half squared errors for model linear).',
    ({ averageLoss, inputs, weight = inputs }) => averageLoss * weight
  ],
  hits_total: [
    'Inputs whose class was predicted correctly before they were learned.',
    ({ accuracy = 0, inputs, weight = inputs }) => Math.round(accuracy * weight)
  ]
}

/** Kinds of content of sent frames, the values of the label `kind` of `admb_sum_bytes_total`. */
const KINDS = ['sums', 'steps', 'predictors', 'other'] as const

const GAUGES = {
  predictor_updates: 'updates',
  batch: 'batch',
  neighbours: 'neighbours',
  gradients_discarded_ratio: 'discardedShare',
  residual_ratio: 'residualShare',
  clipped_ratio: 'clippedShare',
  privacy_epsilon: 'privacy.epsilon',
  privacy_spent_epsilon: 'privacy.spent',
  privacy_exhausted: 'privacy.exhausted',
  incarnation: 'incarnation',
  stream_ended: 'ended'
}

/**
 * Figures over windows, named `admb_recent_NAME`, with the label `window`: `1000`, `10000` (inputs), or a time,
 * such as `1h`.
 */
const RECENT = {
  loss_nats: 'loss',
  accuracy: 'accuracy',
  balanced_accuracy: 'balancedAccuracy',
  auc: 'auc',
  calibration_error: 'calibrationError',
  rmse: 'rmse',
  mae: 'mae',
  r2: 'r2',
  perplexity: 'perplexity'
} as const

const REQUESTS = {
  name: 'admb_http_request_duration_seconds',
  help: 'Time from the head of a request to the end of its response',
  labelNames: ['method', 'route', 'status'],
  buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10]
}

/** Measures all requests, so it is registered on the app itself, not as a plugin. */
export function metricsRoutes(app: FastifyInstance, { peer }: RouteOptions): void {
  const register = new Registry()
  collectDefaultMetrics({ register })
  watch(peer, register)
  const requests = new Histogram({ ...REQUESTS, registers: [register] })
  app.addHook('onResponse', async (request, reply) => {
    const labels = { method: request.method, route: request.routeOptions.url ?? 'unknown', status: reply.statusCode }
    requests.observe(labels, reply.elapsedTime / 1000)
  })
  const type = register.contentType
  const schema = {
    summary: 'Metrics for Prometheus',
    response: { 200: { description: 'Text', content: { 'text/plain': { schema: { type: 'string' } } } }, ...failures }
  }
  app.get('/metrics', { config: { roles: ['read'] }, schema }, async (_request, reply) =>
    reply.type(type).send(await register.metrics())
  )
}

/** Registers the metrics, which read the status at each scrape. */
export function watch(peer: Pick<Peer, 'status'>, register: Registry): void {
  const registers = [register]
  const count = (name: string, help: string, read: (status: PeerStatus) => number | undefined) =>
    new Counter({
      name: `admb_${name}`,
      help,
      registers,
      collect() {
        this.reset()
        this.inc(read(peer.status()) ?? 0)
      }
    })
  for (const [name, path] of Object.entries(COUNTERS)) count(name, helpOf(path), status => valueAt(status, path))
  for (const [name, [help, read]] of Object.entries(SUMS)) count(name, help, read)
  new Counter({
    name: 'admb_sum_bytes_total',
    help: helpOf('sent.kinds'),
    labelNames: ['kind'],
    registers,
    collect() {
      this.reset()
      const { kinds } = peer.status().sent
      for (const kind of KINDS) this.inc({ kind }, kinds[kind])
    }
  })
  for (const [name, key] of Object.entries(RECENT)) {
    new Gauge({
      name: `admb_recent_${name}`,
      help: `Over the last inputs of this run: ${helpOf(`metrics.total.${key}`)}`,
      labelNames: ['window'],
      registers,
      collect() {
        this.reset()
        for (const [window, figures] of windowsOf(peer.status())) {
          const value = figures[key]
          if (value !== undefined) this.set({ window }, value)
        }
      }
    })
  }
  for (const [name, path] of Object.entries(GAUGES)) {
    new Gauge({
      name: `admb_${name}`,
      help: helpOf(path),
      registers,
      collect() {
        const value = valueAt(peer.status(), path)
        if (value !== undefined) this.set(value)
      }
    })
  }
}

/** A number of the status, 1 for true, or the length of a list. */
function valueAt(status: PeerStatus, path: string): number | undefined {
  const value = path.split('.').reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], status)
  return Array.isArray(value) ? value.length : value === undefined ? undefined : Number(value)
}

/** The description of a field of the status. */
function helpOf(path: string): string {
  const field = path.split('.').reduce<z.ZodType>((at, key) => {
    const object = at instanceof z.ZodOptional ? at.unwrap() : at
    return (object as z.ZodObject).shape[key]
  }, statusSchema)
  return (field as z.ZodType).description ?? ''
}

/** The windows that hold inputs. */
function windowsOf({ metrics }: PeerStatus): (readonly [window: string, Partial<Figures>])[] {
  if (metrics === undefined) return []
  const { recent, byTime } = metrics
  const timed = byTime?.windows.map(figures => [windowName(figures.seconds), figures] as const) ?? []
  const windows = recent.map(figures => [String(figures.window), figures] as const)
  return [...windows, ...timed].filter(([, { inputs }]) => inputs > 0)
}

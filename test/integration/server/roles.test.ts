/** Tokens with roles: what each may do, and how often. */
import assert from 'node:assert/strict'
import { generateToken, ROLES, type Role } from '../../../src/server/index.js'
import { PeerServer } from '../../support/http-server.js'
import type { OpenApiDescription } from '../../support/openapi.js'
import { until } from '../../support/peer-processes.js'

const NAMES = Object.keys(ROLES) as Role[]
const TOKENS = Object.fromEntries(NAMES.map(role => [role, generateToken(role)])) as Record<Role, string>
const INPUT = '{"label": "yes", "features": {"1": 1}}'

interface Operation {
  readonly security?: readonly { readonly token: readonly string[] }[]
}

interface Failure {
  readonly error: string
  readonly code: string
  readonly remedy: string
}

describe('roles of HTTP tokens', function () {
  this.timeout(60_000)
  let served: PeerServer | undefined
  afterEach(async () => {
    await served?.stop()
    served = undefined
  })

  function ask(method: string, path: string, token: string): Promise<Response> {
    const abort = new AbortController()
    const headers: Record<string, string> = { authorization: `Bearer ${token}` }
    const isPost = method === 'post'
    if (isPost) headers['content-type'] = 'application/json'
    const answer = fetch(`${served?.url}${path}`, {
      method: method.toUpperCase(),
      headers,
      body: isPost ? INPUT : undefined,
      signal: abort.signal
    })
    // An event stream would not end.
    return answer.then(response => {
      if (path === '/events' && response.ok) abort.abort()
      return response
    })
  }

  it('grant the routes that the OpenAPI description says', async () => {
    served = await PeerServer.start({ token: Object.values(TOKENS) })
    const description = (await (await ask('get', '/openapi.json', TOKENS.read)).json()) as Pick<
      OpenApiDescription,
      'paths'
    >
    const granted: string[] = []
    for (const [path, operations] of Object.entries(description.paths)) {
      for (const [method, { security = [] }] of Object.entries(operations as Record<string, Operation>)) {
        for (const role of NAMES) {
          const { status } = await ask(method, path, TOKENS[role])
          const isGranted = security.length === 0 || security.some(({ token }) => token[0] === role)
          assert.equal(status === 403, !isGranted, `${role}: ${method} ${path} ${status}`)
          assert.notEqual(status, 401)
          if (isGranted && security.length > 0 && role !== 'admin') granted.push(`${role} ${path}`)
        }
      }
    }
    assert.deepEqual(granted.sort(), [
      'learn /learn',
      'learn /openapi.json',
      'learn /predict',
      'learn /predictor',
      'learn /schema',
      'predict /openapi.json',
      'predict /predict',
      'predict /predictor',
      'predict /schema',
      'read /events',
      'read /metrics',
      'read /openapi.json',
      'read /peers',
      'read /schema',
      'read /status'
    ])
    await until('both inputs are learned', () => served?.peer.status().inputs === 2)
  })

  it('a refusal names the role and how to get it', async () => {
    served = await PeerServer.start({ token: [TOKENS.predict] })
    const answer = await ask('post', '/learn', TOKENS.predict)
    assert.equal(answer.status, 403)
    const { error, code, remedy } = (await answer.json()) as Failure
    assert.equal(code, 'ERR_HTTP_ROLE')
    assert.equal(error, 'the token has the role predict, and POST /learn needs learn or admin')
    assert.match(remedy, /admb keygen token --role learn/)
    assert.equal(served.peer.status().inputs, 0)
    assert.equal((await ask('get', '/nothing', TOKENS.predict)).status, 404)
    assert.equal((await ask('post', '/learn', TOKENS.learn)).status, 401)
  })

  it('any other token grants everything', async () => {
    const token = 'a-token-of-some-length'
    served = await PeerServer.start({ token })
    for (const path of ['/status', '/predictor', '/metrics']) assert.equal((await ask('get', path, token)).status, 200)
    assert.equal((await ask('post', '/learn', token)).status, 200)
  })

  it('an unknown role is refused at the start', async () => {
    const token = TOKENS.read.replace('read', 'reader')
    await assert.rejects(PeerServer.start({ token }), { code: 'ERR_HTTP_ROLE' })
  })

  it('limits each token, and addresses without a token, on their own', async () => {
    const other = generateToken('read')
    served = await PeerServer.start({ token: [...Object.values(TOKENS), other], requestsPerSecond: { read: 2 } })
    const many = (token: string) => Promise.all(Array.from({ length: 20 }, () => ask('get', '/schema', token)))
    const answers = await many(TOKENS.read)
    const refused = answers.find(({ status }) => status === 429)
    assert.ok(refused)
    assert.equal(refused.headers.get('retry-after'), '1')
    assert.equal(((await refused.json()) as Failure).error, 'more than 2 requests per second')
    assert.equal((await ask('get', '/schema', other)).status, 200)
    assert.ok((await many(TOKENS.predict)).every(({ status }) => status === 200))
    assert.ok((await many('guessed')).every(({ status }) => status === 401))
    await served.stop()

    served = await PeerServer.start({ token: TOKENS.read, requestsPerSecond: { admin: 2 } })
    assert.ok((await many('guessed')).some(({ status }) => status === 429))
    assert.equal((await ask('get', '/schema', TOKENS.read)).status, 200)
  })
})

/** `admb keygen`: network keys, HTTP tokens, and identities for allow-lists. */
import { writeFile } from 'node:fs/promises'
import { type Command, Option } from 'commander'
import { fileProblem } from '../../base/errors.js'
import { generateToken, ROLES, type Role } from '../../server/options.js'
import { Store } from '../../storage/index.js'
import { UsageError } from '../errors.js'
import { withCommon } from '../options/options.js'
import { print, printJson } from '../output/output.js'

export function keygenCommand(program: Command): Command {
  const command = program.command('keygen')
  withCommon(command.command('network'))
    .description('a network key, with a network id: only peers that have it can connect')
    .requiredOption('--out <file>', 'output file; never overwritten')
    .option('--id <id>', 'the network id, to replace the key of a network (default: a random one)')
    .action(networkKey)
  withCommon(command.command('token'))
    .description('a token for HTTP: only requests that carry it are answered')
    .addOption(new Option('--role <role>', rolesHelp()).choices(Object.keys(ROLES)).default('admin'))
    .requiredOption('--out <file>', 'output file; never overwritten')
    .action(token)
  withCommon(command.command('identity'))
    .description('an identity in a new state directory; prints the peer id for allow-lists')
    .requiredOption('--dir <dir>', 'the state directory to create')
    .action(identity)
  return command.addHelpText(
    'after',
    '\nExamples:\n  admb keygen network --out net.key\n  admb keygen token --out http.token\n  admb keygen token --role predict --out predict.token\n  admb keygen identity --dir state >> allowed.txt'
  )
}

async function networkKey({ out, id: given, json }: { out: string; id?: string; json?: boolean }): Promise<void> {
  const { generateNetworkKey, networkIdIn } = await import('../../network/index.js')
  const key = generateNetworkKey(given)
  const id = networkIdIn(key)
  await writeSecret(out, key)
  if (json) printJson({ command: 'keygen', kind: 'network', file: out, id })
  else print(`wrote ${out}: copy it to every peer over a secure channel and start them with --network-key ${out}`)
}

async function token({ out, role, json }: { out: string; role: Role; json?: boolean }): Promise<void> {
  await writeSecret(out, `${generateToken(role)}\n`)
  if (json) printJson({ command: 'keygen', kind: 'token', role, file: out })
  else print(`wrote ${out}: start the peer with --http-token-file ${out}, and give the token to its HTTP clients`)
}

function rolesHelp(): string {
  return `what it is for: ${Object.entries(ROLES)
    .map(([role, grant]) => `${role} (${grant})`)
    .join('; ')}`
}

/** Readable by this user only. @throws UsageError */
async function writeSecret(out: string, content: string | Uint8Array): Promise<void> {
  try {
    await writeFile(out, content, { flag: 'wx', mode: 0o600 })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') throw new UsageError(`${out} already exists and is not overwritten: give another --out`)
    throw new UsageError(`cannot write ${out} (${fileProblem(error)}): check the path after --out`)
  }
}

async function identity({ dir, json }: { dir: string; json?: boolean }): Promise<void> {
  const { encodeIdentityKey, generateIdentityKey, peerIdOf } = await import('../../network/index.js')
  const store = await Store.open(dir)
  try {
    if (store.identity)
      throw new UsageError(`${dir} already holds an identity, which is not overwritten: give another --dir`)
    const key = await generateIdentityKey()
    await store.create(encodeIdentityKey(key))
    if (json) printJson({ command: 'keygen', kind: 'identity', id: peerIdOf(key), dir })
    else print(peerIdOf(key))
  } finally {
    await store.close()
  }
}

/** Self-signed certificates, made with openssl. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

export interface CertificateFiles {
  readonly cert: string
  readonly key: string
}

/** For 127.0.0.1 and localhost. @returns undefined, after a note, if openssl is not installed */
export function makeCertificate(folder: string, name = 'http'): CertificateFiles | undefined {
  const files = { cert: join(folder, `${name}.cert`), key: join(folder, `${name}.key`) }
  const subject = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  try {
    execFileSync('openssl', ['req', '-x509', ...kind, ...subject, '-keyout', files.key, '-out', files.cert], {
      stdio: 'ignore'
    })
    return files
  } catch {
    console.log('      openssl is not installed: skipped')
    return undefined
  }
}

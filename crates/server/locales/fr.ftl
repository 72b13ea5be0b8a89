### Les mots des pages de paiement. Des phrases courtes, sans jargon.
### Chaque clé se trouve dans chaque fichier de ce dossier ; un test les compare.

## Le cadre
payment-to = Paiement à
test-mode = Mode test
test-mode-body = Sans argent réel.
language-switch = Langue
busy = Un instant…
offline = Vous êtes hors ligne. Cette page vérifie de nouveau dès que la connexion revient.
details = Détails
detail-reference = Référence
detail-payer = Vos coordonnées
detail-total = Total
moment = { $day } à { $time } (heure de Banjul)
month-1 = janvier
month-2 = février
month-3 = mars
month-4 = avril
month-5 = mai
month-6 = juin
month-7 = juillet
month-8 = août
month-9 = septembre
month-10 = octobre
month-11 = novembre
month-12 = décembre
left-hours = { $count ->
    [one] Il vous reste environ { $count } heure pour payer.
   *[other] Il vous reste environ { $count } heures pour payer.
}
left-minutes = { $count ->
    [one] Il vous reste environ { $count } minute pour payer.
   *[other] Il vous reste environ { $count } minutes pour payer.
}
left-seconds = Il vous reste moins d’une minute pour payer.
error-title = À vérifier
title-error = Erreur : { $title }
title-pay = Payer
title-phone = Votre numéro
title-checking = Vérification

## Moyens de paiement
wave = Wave
afrimoney = Afrimoney
qmoney = QMoney
card = carte
card-bank = la banque
pay-with-wave = Payer avec Wave
pay-with-afrimoney = Payer avec Afrimoney
pay-with-qmoney = Payer avec QMoney
pay-with-card = Payer par carte
will-wave = ouvre l’application Wave
will-afrimoney = vous validez sur votre téléphone
will-qmoney = vous recevez un code par SMS
will-card = ouvre la page de la carte

## Choix
choose-title = Comment voulez-vous payer ?
choose-one-title = Vérifiez et payez
choose-none-title = Pas de paiement en ligne
choose-none-body = Ce paiement ne se fait pas en ligne. Demandez à { $merchant } comment payer.
choose-none-invoice = Cette facture ne se paie pas en ligne. Demandez à { $merchant } comment payer.
choose-promise = Rien n’est prélevé avant votre accord.
leave-shop = Annuler et revenir à la boutique
leave-here = Annuler ce paiement
problem-not-started = { $method } n’a pas pu lancer le paiement. Rien n’a été prélevé. { $another ->
    [no] Réessayez.
   *[yes] Réessayez ou payez autrement.
}
problem-card-not-started = La page de la carte n’a pas pu être ouverte. Rien n’a été prélevé. { $another ->
    [no] Réessayez.
   *[yes] Réessayez ou payez autrement.
}
problem-in-progress = Un paiement est encore en cours de vérification. Attendez la réponse avant de payer de nouveau.
problem-too-often = Trop d’essais en peu de temps. Attendez dix minutes, puis réessayez.
problem-stale-form = Cette page était trop ancienne. Rien n’a été envoyé. Veuillez réessayer.
problem-amount-changed = Le montant à payer a changé. Rien n’a été envoyé. Vérifiez le nouveau montant, puis réessayez.
problem-no-new-payment = Ce lien ne reçoit plus de nouveaux paiements. Rien n’a été envoyé. Vous pouvez encore terminer le paiement commencé.
problem-last-place-held = Quelqu’un d’autre est en train de payer la dernière place. Rien n’a été envoyé. Réessayez dans quelques minutes.

## Téléphone
phone-title-afrimoney = Votre numéro Afrimoney
phone-title-qmoney = Votre numéro QMoney
phone-title-wave = Votre numéro Wave
phone-why-push = Nous envoyons la demande de paiement à ce téléphone.
phone-why-code = Nous envoyons un code par SMS à ce téléphone.
phone-why-wave = Le paiement est validé avec ce numéro.
phone-known = Continuer avec { $phone }
phone-another = Utiliser un autre numéro
phone-label = Numéro de téléphone
phone-hint = +220 et 7 chiffres, par exemple +220 712 3456
phone-continue = Continuer
phone-missing = Saisissez votre numéro de téléphone.
phone-format = Saisissez un numéro avec +220 et 7 chiffres, par exemple +220 712 3456.
phone-not-started = La demande n’a pas pu être envoyée à ce numéro. Rien n’a été prélevé. { $another ->
    [no] Vérifiez le numéro.
   *[yes] Vérifiez le numéro ou payez autrement.
}
other-method = Payer autrement
test-numbers = Numéros de test
test-number-0 = accepté
test-number-1 = pas assez d’argent
test-number-2 = refusé par le payeur
test-number-3 = ne répond jamais
test-number-4 = payé, mais la réponse se perd
test-number-5 = accepté après 30 secondes
test-number-6 = annonce le résultat deux fois
test-number-other = Tout autre numéro vous attend sur la page du simulateur.

## Validation sur le téléphone
approve-title = Validez sur votre téléphone
approve-sent = Nous avons envoyé une demande au { $phone }. Ouvrez-la et saisissez votre code PIN.
approve-done = J’ai validé
approve-nothing = Rien sur votre téléphone ?
approve-nothing-1 = Vérifiez que le téléphone est allumé et a du réseau. Cela peut prendre une minute.
approve-nothing-2 = Le numéro ci-dessus n’est pas le vôtre ? Attendez la fin de cette demande : vous pourrez alors payer avec un autre numéro.
approve-wait = Cette page affiche la réponse toute seule.
resend = Renvoyer
resend-after = { $count ->
    [one] Vous pourrez renvoyer après { $count } seconde.
   *[other] Vous pourrez renvoyer après { $count } secondes.
}
simulator-open-phone = Ouvrir le téléphone simulé
simulator-open-wave = Ouvrir Wave simulé
simulator-open-card = Ouvrir la page de carte simulée
simulator-code = Mode test : le code est { $code }.

## Code
code-title = Saisissez le code
code-sent = { $count ->
    [one] Nous avons envoyé { $count } chiffre par SMS au { $phone }.
   *[other] Nous avons envoyé { $count } chiffres par SMS au { $phone }.
}
code-label = Code reçu par SMS
code-left = { $count ->
    [one] Il vous reste { $count } essai.
   *[other] Il vous reste { $count } essais.
}
code-pay = Payer { $amount }
code-missing = Saisissez le code reçu par SMS.
code-format = { $count ->
    [one] Le code a { $count } chiffre.
   *[other] Le code a { $count } chiffres.
}
code-wrong = Ce code n’est pas le bon. Regardez le dernier SMS.
code-expired = Ce code est trop ancien. Demandez-en un nouveau.
code-not-sent-again = Aucun nouveau code ne peut plus être envoyé. Vous pouvez encore saisir celui que vous avez reçu.
code-nothing = Pas encore de SMS ?
code-nothing-number = Vérifiez que le numéro ci-dessus est le vôtre.

## Redirection
redirect-title-wave = Continuez dans Wave
redirect-body-wave = Validez le paiement dans Wave, puis revenez sur cette page.
redirect-open-wave = Ouvrir Wave
redirect-again-wave = Rouvrir Wave
redirect-title-card = Continuez sur la page de la carte
redirect-body-card = Saisissez votre carte là-bas. Ensuite, vous revenez sur cette page.
redirect-open-card = Ouvrir la page de la carte
redirect-again-card = Rouvrir la page de la carte
redirect-title-afrimoney = Continuez avec Afrimoney
redirect-body-afrimoney = Validez le paiement là-bas, puis revenez sur cette page.
redirect-open-afrimoney = Ouvrir Afrimoney
redirect-again-afrimoney = Rouvrir Afrimoney
redirect-title-qmoney = Continuez avec QMoney
redirect-body-qmoney = Validez le paiement là-bas, puis revenez sur cette page.
redirect-open-qmoney = Ouvrir QMoney
redirect-again-qmoney = Rouvrir QMoney
redirect-opens = La page s’ouvre toute seule dans un instant.
leaving-title = Retour à la boutique
leaving-body = Vous n’avez pas payé. Vous revenez chez { $merchant }.

## Vérification
checking-title = Nous demandons à { $who } si vous avez payé
checking-warning = Ne payez pas une deuxième fois.
checking-body = Cette page affiche la réponse toute seule.
checking-close = Vous pouvez fermer cette page ; la boutique sera prévenue.
look-again = Vérifier maintenant

## Payé
paid-title = Payé
paid-thanks = { $merchant } sera prévenu.
paid-with = Payé avec
paid-with-card = Carte
paid-with-cash = Espèces
paid-with-bank-transfer = Virement bancaire
paid-with-check = Chèque
paid-with-western-union = Western Union
paid-with-other = Autre moyen
paid-at = Quand
paid-number = Numéro du paiement
back-to-shop = Retour chez { $merchant }
back-soon = Vous revenez à la boutique dans quelques secondes.
stay = Rester sur cette page
print = Imprimer
can-close = Vous pouvez fermer cette page.

## Non payé
not-paid-title = Pas payé
not-paid-again = { $another ->
    [no] Réessayez
   *[yes] Réessayez ou payez autrement
}
reason-funds = Il n’y a pas assez d’argent sur le compte { $method }.
reason-card-funds = Il n’y a pas assez d’argent sur cette carte.
reason-declined = Le paiement a été refusé dans { $method }.
reason-card-declined = La banque a refusé cette carte.
reason-wrong-code = Le code était faux trop de fois.
reason-expired = La demande n’a pas été validée à temps.
reason-cancelled = Le paiement a été arrêté avant d’être validé.
reason-error = { $method } n’a pas pu terminer le paiement.
reason-card-error = La banque n’a pas pu terminer le paiement.
nothing-taken = Rien n’a été prélevé.

## Les fins
expired-title = Le délai de paiement est passé
expired-body = Cette page ne peut plus recevoir le paiement.
cancelled-title = Annulé
cancelled-body = Ce paiement a été annulé.
start-again = Pour payer, recommencez dans la boutique.
not-certain = Nous ne savons pas encore si de l’argent a été prélevé : { $method } n’a pas répondu. Ne payez pas une deuxième fois. Nous continuons de demander, et la boutique sera prévenue.
late-title = Votre argent est arrivé en retard
late-expired = Il est arrivé après la fin du délai de paiement.
late-cancelled = Il est arrivé après l’annulation du paiement.
late-body = Rien n’est perdu. { $merchant } sera prévenu, et va livrer ou vous rembourser. Gardez le numéro du paiement.
already-title = C’est déjà payé
already-body = Rien de plus n’a été prélevé.
already-second = Un deuxième paiement est arrivé aussi.
refunded-title = Remboursé

## Simulateur
simulator = Simulateur
simulator-body = Vous jouez le payeur.
simulated-wave = Wave, simulé
simulated-afrimoney = Afrimoney sur le téléphone, simulé
simulated-qmoney = QMoney sur le téléphone, simulé
simulated-card = Page de carte, simulée
simulated-bank = La banque demande, simulée
simulated-done = C’est fait
simulated-asks = { $merchant } demande { $amount }.
simulated-phone = Téléphone { $phone }
simulated-choose = Que fait le payeur ?
simulated-faults = Résultats plus rares
simulated-bank-asks = Carte finissant par { $last4 } : est-ce vous qui payez ?
simulated-bank-yes = Oui, c’est moi
simulated-bank-no = Non, refuser
simulated-result = Choisi : { $outcome }.
simulated-result-body = La page du paiement montre le résultat.
simulated-back = Retour au paiement
outcome-approve = Accepter
outcome-funds = Pas assez d’argent
outcome-refuse = Refuser
outcome-silent = Ne jamais répondre
outcome-lost = Payer, mais perdre la réponse
outcome-later = Accepter après 30 secondes
outcome-twice = Annoncer le résultat deux fois
card-choose = Carte de test
card-pay = Payer { $amount }
card-cancel = Revenir sans payer
card-approved = acceptée
card-declined = refusée
card-no-funds = pas assez d’argent
card-challenge = la banque demande d’abord (3-D Secure)
card-not-chosen = Choisissez une des cartes de test.
card-unknown = Ce n’est pas une carte de test.

## Facture
invoice-line = Facture { $number }
invoice-due-line = Facture { $number }, à payer au plus tard le { $day }
invoice-overdue-line = Facture { $number }, échue le { $day }
invoice-part-paid = { $paid } sur { $total } sont payés.
invoice-details = Ce qui est facturé
invoice-to = Facturé à
invoice-issued = Émise le
invoice-due = Échéance
invoice-before-tax = Hors taxe
invoice-tax = Taxe ({ $rate } %)
invoice-paid = Payé
invoice-left = Reste à payer
invoice-payments = Paiements reçus
invoice-document = Télécharger la facture (PDF)
invoice-paid-whole = Cette facture est payée en entier.
invoice-cancelled = Cette facture a été annulée. Il n’y a rien à payer.
received = Nous avons reçu { $amount }
choose-rest-title = Comment voulez-vous payer le reste ?
part-summary = Ne payer qu’une partie maintenant
part-label = Montant à payer maintenant
part-hint = Jusqu’à { $amount }. Laissez vide pour tout payer.
part-other-summary = Payer un autre montant
part-other-hint = Jusqu’à { $amount }. Laissez vide pour payer { $asked }.
part-line = Une partie des { $left } qui restent à payer.
part-format = Écrivez le montant en chiffres, par exemple { $example }.
part-too-much = Il ne reste que { $amount } à payer.
amount-too-small = Écrivez un montant au-dessus de 0.
amount-too-large = Ce montant est trop grand. Écrivez-en un plus petit.
late-invoice-cancelled = Il est arrivé après l’annulation de la facture.
draft-title = Cette facture n’est pas encore prête
draft-body = { $merchant } est en train de l’écrire. Il n’y a rien à payer maintenant.

## Lien de paiement
field-amount = Montant
field-name = Votre nom
field-email = Adresse e-mail
field-optional = (facultatif)
field-select = Choisissez
field-currency = En { $currency }
field-between = De { $least } à { $most }
field-least = Au moins { $amount }
field-most = Au plus { $amount }
field-missing = Remplissez ce champ.
field-email-missing = Saisissez votre adresse e-mail.
field-select-missing = Choisissez une des réponses.
field-box-missing = Cochez cette case pour continuer.
field-too-long = C’est trop long.
field-card-number = N’écrivez pas de numéro de carte ici.
field-email-format = Saisissez une adresse e-mail, par exemple awa@example.gm.
field-phone-hint = +220 et 7 chiffres, par exemple +220 712 3456, ou un numéro d’un autre pays avec + et son indicatif
field-phone-format = Saisissez un numéro avec +220 et 7 chiffres, par exemple +220 712 3456, ou un numéro d’un autre pays avec + et son indicatif.
field-number-format = Saisissez un nombre en chiffres.
field-format = Ceci ne peut pas être utilisé. Vérifiez-le.
closed-title = Ce lien ne reçoit plus de paiements
closed-by-merchant = Ce lien a été fermé.
closed-expired = Le délai pour payer avec ce lien est passé.
closed-used-up = Ce lien a été payé autant de fois que possible.
closed-body = Demandez à { $merchant } un autre moyen de payer.
fields-title = Remplissez ceci, puis choisissez comment payer
received-apart-title = Votre paiement dépasse ce qui restait
apart-earlier = Un paiement précédent dépassait ce qui restait.
received-apart = Il est gardé à part, et { $merchant } peut le rembourser. Donnez-leur ce numéro :
received-too = { $merchant } l’a reçu et peut le rembourser. Donnez-leur ce numéro :
qr-label = Code QR avec l’adresse de cette page
qr-body = Pour payer sur votre téléphone, visez ce code avec son appareil photo.

## Vérifier un reçu
verify-title = Vérifier un reçu
verify-intro = Scannez le code QR d’un reçu avec l’appareil photo du téléphone. Cette page montre alors ce qui a vraiment été payé. Ou saisissez ci-dessous le code de validation du reçu.
verify-intro-private = Ce que contient le code QR est vérifié sur votre appareil, et rien n’en est envoyé. Un code de validation est envoyé à { $host }, qui le recherche.
verify-no-script = Saisissez ci-dessous le code de validation du reçu. Les codes QR sont vérifiés sur votre appareil, et cette page a besoin de JavaScript pour cela.
verify-valid-title = Ce paiement est authentique
verify-valid-body = { $host } a signé ceci :
verify-merchant = Payé à
verify-number = Numéro du reçu
verify-compare = Comparez avec le reçu devant vous. Seul un nom long peut s’arrêter plus tôt ici, avec « … ». Si autre chose y est différent, le reçu n’est pas authentique.
verify-later = C’était vrai au moment du paiement. Cela ne dit pas si de l’argent a été remboursé ensuite.
verify-payer-title = Qui a payé ?
verify-payer-body = Saisissez le nom et le code de validation comme le reçu les montre. Les deux restent sur votre appareil.
verify-payer = Payeur
verify-code = Code de validation
verify-code-hint = 32 chiffres et lettres de a à f
verify-payer-check = Vérifier le payeur
verify-payer-yes = Ce nom et ce code appartiennent au paiement.
verify-payer-no = Ce nom et ce code ne vont pas ensemble. Comparez-les avec le reçu.
verify-invalid-title = Reçu non valable
verify-invalid-body = { $host } n’a pas signé ceci. Ne l’acceptez pas comme preuve de paiement.
verify-invalid-why = Il est peut-être faux, ou il manque une partie du code. Scannez de nouveau le code entier ou demandez à la boutique.
verify-outdated-title = Ouvrez de nouveau cette page
verify-outdated-body = Le reçu nomme une clé que cette page ne connaît pas. Elle est peut-être plus récente que la page, qui a besoin d’Internet pour l’apprendre. Le reçu est peut-être bon, peut-être pas : cette page ne peut pas le dire.
verify-unsupported-title = Ce navigateur ne peut pas vérifier les reçus
verify-unsupported-body = Il est trop ancien, ou l’adresse de cette page ne commence pas par https. Ouvrez la page dans un navigateur plus récent. Le reçu est peut-être bon, peut-être pas : cette page ne peut pas le dire. Vous pouvez saisir son code de validation ci-dessous.
verify-paste-title = Vérifier à la main
verify-paste = Code du reçu
verify-paste-hint = Le code de validation, 32 chiffres et lettres de a à f, ou tout ce que contient le code QR.
verify-code-format = Saisissez le code de validation : 32 chiffres et lettres de a à f.
verify-issued-body = { $host } a émis ce reçu :
verify-refunded = Remboursé depuis
verify-unknown-title = Aucun reçu n’a ce code
verify-unknown-body = { $host } n’a émis aucun reçu avec ce code de validation. Ne l’acceptez pas comme preuve de paiement.
verify-unknown-why = Comparez le code avec le reçu, caractère par caractère, et essayez de nouveau, ou scannez son code QR.
verify-check = Vérifier

## Messages
not-found-title = Il n’y a pas de paiement ici
not-found-body = L’adresse est peut-être incomplète. Retournez à la boutique et ouvrez de nouveau son lien.
foreign-title = Ce formulaire ne vient pas de cette page
foreign-body = Il n’a pas été utilisé. Ouvrez de nouveau le paiement.
too-large-title = C’est trop de texte
too-large-body = Rien n’a été utilisé. Ouvrez de nouveau le paiement et écrivez moins.
too-many-title = Trop de demandes
too-many-body = Attendez une minute, puis réessayez.
unavailable-title = Indisponible pour un instant
unavailable-body = Nous n’avons pas pu traiter votre demande. Attendez un instant, puis vérifiez. La page vous dit si vous avez payé.
fault-title = Un problème est survenu chez nous
fault-body = Vérifiez de nouveau dans un instant. La page vous dit si vous avez payé.
fault-number = Donnez ce numéro à la boutique :

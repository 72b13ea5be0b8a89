### Les mots des courriels aux clients et aux marchands, à côté de ceux des pages. Phrases courtes, sans tournures.
### Chaque clé se trouve dans chaque fichier « letters » de ce dossier ; un test les compare.

## Les deux
letter-test-subject = TEST : { $subject }
letter-test = Ceci est un test. Aucun argent réel ne circule.
letter-hello = Bonjour { $name },
letter-hello-nobody = Bonjour,
letter-row = { $name } : { $value }
letter-total = Total
letter-left = Reste à payer
letter-refunded = Remboursé
letter-pay = Payer cette facture
letter-not-online = Cette facture ne se paie pas en ligne. Demandez à { $merchant } comment payer.
letter-address = Ou ouvrez cette adresse :
letter-question = Une question ? Répondez à ce courriel : la réponse va à { $merchant }.
letter-automatic = Ce courriel est écrit par une machine qui ne lit pas les réponses.

## La facture
letter-invoice-subject = Facture { $number } de { $merchant }
letter-invoice-lead = { $merchant } vous envoie la facture { $number }.
letter-invoice-due = À payer au plus tard le { $day }
letter-invoice-overdue = Était à payer au plus tard le { $day }
letter-invoice-settled = Payée. Il ne reste rien à payer.
letter-invoice-lines = Ce que vous payez
letter-invoice-more = { $count ->
    [one] … et { $count } ligne de plus.
   *[other] … et { $count } lignes de plus.
}
letter-invoice-before-tax = Hors taxe
letter-invoice-tax = Taxe ({ $rate } %)
letter-invoice-paid = Déjà payé
letter-invoice-note = Un mot de { $merchant }
letter-invoice-attached = La facture est jointe en fichier PDF.
letter-invoice-unexpected = Si vous ne savez pas de quoi il s’agit, ne payez pas. Demandez d’abord à { $merchant }.

## Le reçu
letter-receipt-subject = Reçu { $number } de { $merchant }
letter-receipt-lead = { $merchant } a reçu votre paiement. Merci.
letter-receipt-number = Reçu
letter-receipt-invoice = Pour la facture
letter-receipt-method = Payé avec
letter-receipt-when = Quand
letter-receipt-settled = La facture est payée. Il ne reste rien à payer.
letter-receipt-attached = Le reçu est joint en fichier PDF. Gardez-le comme preuve.
letter-method-wave = Wave
letter-method-afrimoney = Afrimoney
letter-method-qmoney = QMoney
letter-method-card = Carte
letter-method-cash = Espèces
letter-method-bank-transfer = Virement bancaire
letter-method-check = Chèque
letter-method-western-union = Western Union
letter-method-other = Autre moyen

## Le point de réception arrêté
letter-endpoint-title = Votre point de réception { $host } est arrêté
letter-endpoint-gone = Il a répondu qu’il n’existe plus (statut 410).
letter-endpoint-failing = Il n’a accepté aucun événement depuis cinq jours.
letter-endpoint-stopped = Plus aucun événement ne lui est envoyé. Les paiements continuent comme avant.
letter-endpoint-description = Description
letter-endpoint-when = Arrêté
letter-endpoint-next = Que faire
letter-endpoint-mend = Faites que votre serveur réponde à chaque événement par un statut de 200 à 299 en moins de 15 secondes.
letter-endpoint-activate = Puis remettez-le en marche :
letter-endpoint-missed = Puis faites renvoyer ce qu’il a manqué :
